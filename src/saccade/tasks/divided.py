"""Whether a recipe can be divided among the processes that torchrun started: refused before the data is read."""

import os

from saccade.errors import UserError, WrongUse
from saccade.plan.described import recipe_subject
from saccade.plan.layout import Layout, insist
from saccade.plan.memory import memory_of
from saccade.plan.text import short_bytes
from saccade.tasks.contract import Recipe
from saccade.train.ranks import started


def insist_it_can_be_divided(recipe: Recipe) -> None:
    """One clear line, with the numbers, about a layout that cannot be; what only the built model shows is refused
    before the first step."""
    processes = started()
    parallel = recipe.train.parallel.among(processes)
    if processes == 1:
        return
    if recipe.trials:
        raise WrongUse(
            f"trials are {len(recipe.trials)} trainings, one after the other: with torchrun leave them out, "
            "--set trials=[]"
        )
    try:
        subject = recipe_subject(recipe.name, recipe.table())
    except UserError:
        return  # a model that it starts from brings the sizes: what is built is looked at before the first step
    again = "full" if parallel.checkpointing == "full" else "none"
    layout = Layout(
        data=parallel.data, sharded=parallel.sharded, tensor=parallel.tensor, checkpointing=again, precision="float32"
    )
    insist(subject, layout)
    if recipe.train.device in ("auto", "cpu") and hasattr(os, "sysconf"):
        here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        beside = int(os.environ.get("LOCAL_WORLD_SIZE", processes))
        needed = beside * memory_of(subject, layout).total
        if needed > here:
            raise UserError(
                f"{recipe.name} on {layout} needs {short_bytes(needed)} for the {beside} processes of this machine, "
                f"which has {short_bytes(here)}: more machines, or a smaller model"
            )
