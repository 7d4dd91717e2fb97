"""Saccade's own training of a small language model: the recipe, the task and the loop of `saccade train`.

`python -m bench.engines.characters DATA --steps N --seed N` prints one line of JSON.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

import torch

from saccade import __version__
from saccade.config import override, read_toml
from saccade.data.prepared import kept
from saccade.errors import UserError
from saccade.tasks.language import LanguageRecipe, LanguageTask
from saccade.tasks.load import recipe_path
from saccade.train.log import Log
from saccade.train.loop import train

RECIPE = "shakespeare-small"


def read_recipe(*changes: str) -> LanguageRecipe:
    return LanguageRecipe.read(override(read_toml(recipe_path(RECIPE)), list(changes)), where=RECIPE)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    # One validation, after the last step: the loop's clock has stopped by then.
    steps = f"train.steps={given.steps}", f"train.validate_every={given.steps}"
    recipe = read_recipe(*steps, f"train.seed={given.seed}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        work, _ = LanguageTask().prepare(recipe, [given.data], folder, resume=False)
        outcome = train(work, recipe.train, folder, Log(folder, quiet=True))
        arrays = kept(folder / "prepared")
    if arrays is None:
        raise UserError("what was validated on is gone")
    result = {
        "engine": f"saccade {__version__}",
        "seconds": outcome.seconds,
        "loss": outcome.scores["loss"],
        "validated": len(arrays["valid"]) - 1,
        "parameters": sum(weight.numel() for weight in work.model.parameters()),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
