"""The command that follows directions: walk."""

from saccade.cli.asking import answer_all
from saccade.cli.names import ModelName
from saccade.cli.understand import PLAIN, PlainOptions
from saccade.errors import WrongUse
from saccade.pipelines.table import TASKS


def walk(*commands: str, model: ModelName = TASKS["walking"].model, options: PlainOptions = PLAIN) -> int:
    """Print the actions after commands: those of the arguments, or of each line of standard input.

    A word that the model does not know is named, and what it knows is told; a near misspelling is read, and that is
    told, too.

    For example:

        saccade train walker --out my-walker
        saccade walk "turn left twice and jump" --model my-walker
        saccade walk "jump around right" --model my-walker --look words.png
        saccade walk --model my-walker --format json < commands.txt

    Parameters
    ----------
    commands:
        Commands, such as "walk left and jump twice".
    model:
        Folder of a model trained for walking.
    """
    if not model:
        raise WrongUse(
            "no walker is bundled: train one (saccade train walker --out my-walker), then walk with --model my-walker"
        )
    return answer_all(commands, model, options, TASKS["walking"])
