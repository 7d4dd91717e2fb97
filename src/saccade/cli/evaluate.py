"""The command that scores models."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from saccade.cli.answer import Options
from saccade.cli.names import ModelName
from saccade.cli.output import tell
from saccade.cli.progress import progress_bar
from saccade.errors import MissingData

if TYPE_CHECKING:
    from saccade.evaluate.metrics import Score


def evaluate(
    model: ModelName,
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
    """Score a model on files. Default: the test part of its recipe, or the one that the model carries.

    Without files the data of the model's recipe is looked for; where it is not on this machine, the test part in the
    model's folder serves, which most bundled models have. What is scored on is told.

    For example:

        saccade evaluate en-es
        saccade evaluate en-es --data ~/data
        saccade evaluate my-model test.en test.es
        saccade evaluate my-model test.tsv --beam 1 --format json

    Parameters
    ----------
    model:
        Name of a bundled model, or a model folder.
    files:
        As for training: for translation a table of source and target (.tsv, .csv, .jsonl) or two aligned files; for
        classification a table; for tagging CoNLL-U; for a language model texts; for pictures a folder of folders;
        for speech a table of sound files and texts.
    data:
        Folder of the recipe's data. Default: $SACCADE_DATA, then ./data.
    beam:
        Beam width. Default: the model's setting.
    alpha:
        Length penalty; higher values favour longer texts.
    lowercase:
        Ignore case. Default: as in the recipe.
    exact:
        Compute in fp32 instead of the fastest near-lossless format (see saccade doctor).
    int8:
        Use 8-bit weights: faster on large models; some words may differ.
    format:
        json: one JSON object per line.
    """
    options = Options(beam=beam, alpha=alpha, exact=exact, int8=int8)
    request, how = options.request(), options.how
    from saccade.carried import carried_test
    from saccade.data.text import data_folders
    from saccade.folder import read_folder
    from saccade.pipelines.load import model_path, open_folder
    from saccade.tasks.recipes import task_named

    folder = read_folder(model_path(model))
    task = task_named(folder.config.task)
    pipeline = open_folder(folder, how)

    def scored(chosen: Sequence[Path]) -> "list[Score]":
        folders = data_folders(data)
        with progress_bar(f"scoring {folder.path.name}") as report:
            return task.evaluate(pipeline, folder, chosen, folders, request, lowercase=lowercase, report=report)

    try:
        scores, where = scored(files), "" if files else "the test part of its recipe"
    except MissingData:
        carried = carried_test(folder.path, folder.config.sha256)
        if files or carried is None:
            raise
        scores, where = scored([carried]), f"the test part in its folder, {carried.name}"
    tell(f"{folder.path.name}: scored on {where}", quiet=not where)
    for score in scores:
        print(json.dumps(vars(score)) if format == "json" else score)
    sys.stdout.flush()
    return 0
