"""Which arithmetic a model runs in by default: int8 where the validation part shows no loss, else int16."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from saccade.config import Table
from saccade.folder import ModelFolder
from saccade.pipelines.load import open_folder
from saccade.runtime.contract import How

TOLERANCE = 0.1
"""Points that int8 may lose. Less than that is noise on any validation part here."""
CANDIDATES: tuple[How, How] = ("int16", "int8")


@dataclass(frozen=True)
class Figure:
    """What a model reaches on the validation part."""

    name: str
    value: float
    point: float = 1.0
    """One point, in its own unit: 0.01 of a share; negative where less is better."""


FigureOf = Callable[[Any], Figure]
"""Of a model, given as its pipeline."""


def compare_arithmetic(folder: ModelFolder, figure_of: FigureOf) -> Table | None:
    """The figure in each arithmetic and the default that follows; None where the kernels cannot run the model."""
    found: dict[How, Figure] = {}
    for how in CANDIDATES:
        pipeline = open_folder(folder, how)
        if pipeline.choice.how != how:
            return None
        found[how] = figure_of(pipeline)
    finer, coarser = (found[how] for how in CANDIDATES)
    lost = (finer.value - coarser.value) / finer.point
    values: Table = {how: round(figure.value, 5) for how, figure in found.items()}
    return {"figure": finer.name, **values, "default": "int8" if lost <= TOLERANCE else "int16"}
