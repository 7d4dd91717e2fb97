"""The command that follows directions: walk."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from cyclopts import Parameter

from saccade.cli.asking import answer_all, row_of
from saccade.cli.names import ModelName
from saccade.cli.output import tell
from saccade.cli.understand import PlainOptions
from saccade.errors import WrongUse
from saccade.pipelines.table import TASKS

if TYPE_CHECKING:
    from saccade.pipelines.answer import Answer
    from saccade.pipelines.pipeline import Pipeline
    from saccade.pipelines.route_walker import RouteWalk
    from saccade.worlds.maps import Pose


@Parameter(name="*")
@dataclass(frozen=True)
class WalkingOptions(PlainOptions):
    """Options of walk."""

    map: Annotated[Path | None, Parameter(show_default=False)] = None
    "Walk through this maze: a map of SAIL (.xml), for models of routes."
    start: Annotated[str, Parameter(show_default=False)] = ""
    "Where the walk through a maze begins, as X,Y,HEADING; 0 is north, 90 east, 180 south, 270 west."
    draw: Annotated[Path | None, Parameter(show_default=False)] = None
    "Draw the path into the map: FILE.png."

    def tune(self, pipeline: "Pipeline[Any, Any]") -> None:
        if self.map is not None:
            from saccade.worlds.maps import read_maze

            pipeline.maze = read_maze(self.map)  # type: ignore[attr-defined]
            pipeline.start = pipeline.maze.check(_pose(self.start))  # type: ignore[attr-defined]

    def keep(self, answer: "Answer") -> None:
        if self.draw is not None:
            from saccade.look.maze import draw_walk

            walk = cast("RouteWalk", answer)
            draw_walk(walk.maze, walk.path, self.draw)
            tell(f"drew {self.draw}", quiet=self.quiet)


WALKING = WalkingOptions()


def walk(*commands: str, model: ModelName = TASKS["walking"].model, options: WalkingOptions = WALKING) -> int:
    """Print the actions after commands: those of the arguments, or of each line of standard input.

    A word that the model does not know is named, and what it knows is told; a near misspelling is read, and that is
    told, too. A model of routes walks through a maze: it needs --map and --start, takes one sentence of directions
    after the other, and the place it comes to is printed, too.

    For example:

        saccade walk "turn left twice and jump"
        saccade walk "jump around right" --look words.png
        saccade walk --format json < commands.txt
        saccade walk "forward" --model my-walker
        saccade walk --model runs/sail --map map-l.xml --start 24,21,0 "turn left. walk to the lamp" --draw path.png

    Parameters
    ----------
    commands:
        Commands, such as "walk left and jump twice", or directions.
    model:
        Name or folder of a model trained for walking or for routes.
    """
    row = row_of(model)
    if row.name == "routes" and (options.map is None or not options.start):
        raise WrongUse(f"{model} walks through mazes: add --map FILE --start X,Y,HEADING")
    if row.name == "walking" and (options.map, options.start, options.draw) != (None, "", None):
        raise WrongUse(f"{model} follows commands without a maze: --map, --start and --draw are for models of routes")
    if options.start:
        _pose(options.start)  # before anything is loaded
    if options.draw is not None and len(commands) != 1:
        raise WrongUse(f"{options.draw} can hold one path, but there are {len(commands) or 'many'} texts; give one")
    return answer_all(commands, model, options, row if row.verb == "walk" else TASKS["walking"])


def _pose(start: str) -> "Pose":
    """X,Y,HEADING"""
    from saccade.worlds.maps import Pose

    try:
        x, y, heading = (int(part) for part in start.split(","))
    except ValueError:
        raise WrongUse(f"--start is X,Y,HEADING, such as 24,21,0, not {start[:40]!r}") from None
    return Pose(x, y, heading)
