"""The command that measures what pre-training is worth."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from saccade.cli.names import RecipeName, offered_models
from saccade.cli.output import make_folder
from saccade.errors import WrongUse


def transfer(
    recipe: RecipeName,
    /,
    *,
    init: Annotated[list[str], Parameter(negative="", completer=offered_models)] = ["bert-mini"],  # noqa: B006
    examples: Annotated[list[str], Parameter(negative="")] = ["50", "200", "1000", "all"],  # noqa: B006
    seeds: int = 3,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    set_: Annotated[list[str], Parameter(name="--set", negative="")] = [],  # noqa: B006
    data: Path | None = None,
) -> int:
    """Compare training from scratch with fine-tuning, for several numbers of labelled examples.

    Writes a table and a picture of the scores.

    For example:

        saccade transfer tagger-scratch --data ~/data
        saccade transfer tagger-scratch --init bert-mini --init runs/roberta-mini --seeds 5 -o runs/transfer
        saccade transfer my-recipe.toml --examples 50 --examples 200

    Run the same command again to continue an interrupted study.

    Parameters
    ----------
    recipe:
        Name or file of a recipe for classification or tagging, without `init`.
    init:
        Model to start from. May be repeated. Training from scratch is always included.
    examples:
        Number of labelled examples, or all. May be repeated.
    seeds:
        Number of runs of each, with different examples and random numbers.
    out:
        Folder of the report. Default: runs/transfer.
    set_:
        Change a key of the recipe: dotted.key=value. May be repeated.
    data:
        Folder of the recipe's data. Default: $SACCADE_DATA, then ./data.
    """
    if seeds < 1:
        raise WrongUse(f"--seeds must be at least 1, not {seeds}")
    counts = [_count(text) for text in examples]
    from saccade.config import override, read_toml
    from saccade.data.text import data_folders
    from saccade.pipelines.load import model_path
    from saccade.study.transfer import study_transfer
    from saccade.tasks.recipes import recipe_path, task_named

    for model in init:
        model_path(model)
    table = read_toml(recipe_path(recipe))
    table = override(table, set_, task_named(str(table.get("task", "missing"))).recipe)
    if table.get("init"):
        raise WrongUse(f"{recipe} starts from {table['init']} already; give a recipe from scratch")
    out = out or Path("runs") / "transfer"
    make_folder(out)

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    path = study_transfer(table, ["", *init], counts, range(1, seeds + 1), data_folders(data), out, say)
    if path is None:
        print("stopped; the same command goes on", file=sys.stderr)
        return 130
    print(path)
    return 0


def _count(text: str) -> int:
    if text == "all":
        return 0
    if not text.isdecimal() or not 0 < int(text) <= 10**9:
        raise WrongUse(f"--examples takes a number or all, not {text!r}")
    return int(text)
