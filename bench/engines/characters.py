"""Saccade's own training of a small language model: the recipe, the task and the loop of `saccade train`.

`python -m bench.engines.characters DATA --seed N` prints one line of JSON. With --adamw it takes the plain loop's steps
and optimiser instead of the recipe's own.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

import torch

from bench.engines.nanogpt import PLAN
from saccade import __version__
from saccade.config import override, read_toml
from saccade.data.prepared import kept
from saccade.errors import UserError
from saccade.tasks.language import LanguageRecipe, LanguageTask
from saccade.tasks.recipes import recipe_path
from saccade.train.log import Log
from saccade.train.loop import train

RECIPE = "shakespeare-small"
PLAIN = ("train.muon=0", "train.adam.rate=1e-3", f"train.steps={PLAN.steps}")
"""The recipe with the plain loop's optimiser, at its rate, for as many steps."""


def read_recipe(*changes: str) -> LanguageRecipe:
    return LanguageRecipe.read(override(read_toml(recipe_path(RECIPE)), list(changes), LanguageRecipe), where=RECIPE)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--adamw", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    changes = [*(PLAIN if given.adamw else ()), f"train.seed={given.seed}"]
    # One validation, after the last step: the loop's clock has stopped by then.
    steps = read_recipe(*changes).train.steps
    recipe = read_recipe(*changes, f"train.validate_every={steps}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        work = LanguageTask().prepare(recipe, [given.data], folder, resume=False).work
        outcome = train(work, recipe.train, folder, Log(folder, quiet=True))
        arrays = kept(folder / "prepared")
    if arrays is None:
        raise UserError("what was validated on is gone")
    result = {
        "engine": f"saccade {__version__}, {'AdamW' if given.adamw else 'its recipe'}",
        "steps": steps,
        "seconds": outcome.seconds,
        "loss": outcome.scores["loss"],
        "validated": len(arrays["valid"]) - 1,
        "parameters": sum(weight.numel() for weight in work.model.parameters()),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
