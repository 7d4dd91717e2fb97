"""The command that scores models."""

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from saccade.cli.answer import Options
from saccade.cli.progress import progress_bar


def evaluate(
    model: str,
    /,
    *files: Path,
    data: Path | None = None,
    beam: int | None = None,
    alpha: float | None = None,
    lowercase: bool | None = None,
    exact: Annotated[bool, Parameter(negative="")] = False,
    int8: Annotated[bool, Parameter(negative="")] = False,
    format: Literal["text", "json"] = "text",
) -> int:
    """Score a model on held-out files: by default the test part that its recipe names.

    For example:

        saccade evaluate en-es --data ~/data
        saccade evaluate my-model test.en test.es
        saccade evaluate my-model test.tsv --beam 1 --format json

    Parameters
    ----------
    model:
        A bundled model's name, or a model folder.
    files:
        For translation: a TSV of source and target, or two aligned files; for a language model: texts.
    data:
        Folder the recipe's data is in; by default $SACCADE_DATA, then ./data.
    beam:
        Beginnings kept at every step; by default the model's own setting.
    alpha:
        Length penalty.
    lowercase:
        Score without regard to case; by default as in the recipe.
    exact:
        Plain fp32 arithmetic instead of the fastest near-lossless one (see saccade doctor).
    int8:
        The smallest weights: faster on large models, and now and then another word.
    format:
        json: one object a line, for machines.
    """
    options = Options(beam=beam, alpha=alpha, exact=exact, int8=int8)
    request, how = options.request(), options.how
    from saccade.data.text import data_folders
    from saccade.folder import read_folder
    from saccade.tasks.load import model_path, task_named

    folder = read_folder(model_path(model))
    task = task_named(folder.config["task"])
    pipeline = task.load(folder, how)
    with progress_bar(f"scoring {folder.path.name}") as report:
        scores = task.evaluate(pipeline, folder, files, data_folders(data), request, lowercase=lowercase, report=report)
    for score in scores:
        print(json.dumps(vars(score)) if format == "json" else score)
    sys.stdout.flush()
    return 0
