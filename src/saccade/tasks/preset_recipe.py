"""The recipe of a preset on the user's own files: the paper's model and optimiser, all else by the size of the data."""

import os
from collections.abc import Sequence
from pathlib import Path

from saccade.arch.bert import BertConfig
from saccade.arch.heads import EncoderModel
from saccade.config import Table, changed
from saccade.errors import UserError, WrongUse
from saccade.plan.described import recipe_subject
from saccade.plan.layout import Layout
from saccade.plan.memory import memory_of
from saccade.plan.text import short_bytes
from saccade.presets.preset import Preset
from saccade.presets.rows import PRESETS
from saccade.tasks.contract import Task


def preset_recipe(
    preset: Preset, task: Task, files: Sequence[Path], out: Path, init: str = ""
) -> tuple[Table, list[str]]:
    """The table of the recipe, and what was chosen."""
    if init:
        raise WrongUse(f"{preset.name} has sizes of its own, and --from brings those of another: leave one of them out")
    recipe, messages = task.recipe_for(files, out)
    table = recipe.table() | {"model": preset.model_table}
    if isinstance(preset.model, EncoderModel):
        encoder = preset.model.encoder
        if task.name == "masked":
            table["next_sentence"] = isinstance(encoder, BertConfig) and encoder.segments > 1
            table["train"]["muon"] = 0.0
        else:
            table["pooling"] = "first"
    told = [line for line in messages if not line.startswith(("model: ", "read as "))]
    return changed(table, preset.settings.items()), [*told, f"model: {preset.title}; steps and vocabulary by the data"]


def insist_it_can_be_held(name: str, table: Table) -> None:
    """One clear line before anything is built that this machine cannot hold, if `name` is a preset's."""
    if name not in PRESETS or not hasattr(os, "sysconf"):
        return
    here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # torchrun says how many processes there are, and how many of them here: as many machines share the model.
    machines = int(os.environ.get("WORLD_SIZE", "1")) // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    everywhere = here * max(1, machines)
    needed = memory_of(recipe_subject(name, table), Layout(precision="float32")).total
    if needed > everywhere:
        raise UserError(
            f"{name} needs {short_bytes(needed)} to train, and there are {short_bytes(everywhere)} here: make it "
            f"smaller with --set model.…, or see what holds it with: saccade plan {name}"
        )
