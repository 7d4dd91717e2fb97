"""Arguments that name a model or a recipe, and what the shell offers for them when Tab is pressed."""

from glob import escape, glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from saccade.pipelines.table import TASKS

if TYPE_CHECKING:
    from cyclopts.completion import CompletionContext

# Asking pipelines/load.py for these would import NumPy and more: half a second on every Tab.
PACKAGE = Path(__file__).parent.parent


def offered_models(context: "CompletionContext") -> list[str]:
    """The bundled models, and the model folders that begin as what was typed so far, such as runs/en-es."""
    bundled = sorted(path.parent.name for path in PACKAGE.glob("zoo/*/config.json"))
    begun = context.incomplete
    configs = [*_beginning(begun, "*/config.json"), *_beginning(begun, "*/*/config.json")]
    return bundled + [config.removesuffix("/config.json") for config in configs]


def offered_recipes(context: "CompletionContext") -> list[str]:
    """The bundled recipes, the tasks, and recipe files."""
    bundled = sorted(path.stem for path in PACKAGE.glob("recipes/*.toml"))
    return bundled + list(TASKS) + _beginning(context.incomplete, "*.toml")


def offered_cards(context: "CompletionContext") -> list[str]:
    """Models, and presets."""
    from saccade.presets.rows import PRESETS

    return [*offered_models(context), *PRESETS]


def offered_plans(context: "CompletionContext") -> list[str]:
    """The presets, and what else can be planned."""
    from saccade.presets.rows import PRESETS

    return [*PRESETS, "lectures", *offered_recipes(context)]


def _beginning(begun: str, pattern: str) -> list[str]:
    # Not Path.glob, which fails where a folder disappears meanwhile and drops a leading "./".
    return sorted(glob(escape(begun) + pattern))


ModelName = Annotated[str, Parameter(completer=offered_models)]
"""A bundled model's name, or a model folder."""
ShownName = Annotated[str, Parameter(completer=offered_cards)]
"""A bundled model's name, a model folder, or a preset."""
PlannedName = Annotated[str, Parameter(completer=offered_plans)]
"""A preset, a recipe, or a model folder."""
RecipeName = Annotated[str, Parameter(completer=offered_recipes)]
"""A recipe's name, a recipe file, or a task."""
