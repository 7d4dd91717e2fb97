"""The command that tidies up after a training."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def clean(run: Path, /, *, force: Annotated[bool, Parameter(negative="")] = False) -> int:
    """Delete what a finished training no longer needs: checkpoints and encoded data. The model stays.

    For example:

        saccade clean runs/en-es

    Parameters
    ----------
    run:
        Folder of the training, made by `saccade train`.
    force:
        Also if the training is not finished: it can then not be resumed, only started again.
    """
    from saccade.train.leftovers import clean as clean_run

    freed = clean_run(run, force=force)
    print(f"{freed / 1e6:.1f} MB freed in {run}")
    return 0
