"""A model that walks through a maze as it is told: directions in, a path out, step after step with what is seen."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, cast

from pydantic import Field

from saccade.data.routes import as_known
from saccade.errors import UserError
from saccade.folder import ModelFolder, TaskSettings
from saccade.look.record import Looks
from saccade.pipelines.actor import Actor, Episode
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.pipeline import Pipeline, Report, Request, unreported
from saccade.pipelines.table import TASKS
from saccade.runtime.contract import How
from saccade.runtime.open import Choice
from saccade.sources.sentences import split_sentences
from saccade.sources.text import TextItem, TextSource
from saccade.worlds.maps import ACTIONS, Maze, MazeWorld, Pose

LONGEST_LEG = 40
"""Actions after one sentence."""


class RouteSettings(TaskSettings):
    """What a model folder says about the directions its model was trained on."""

    words: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field(min_length=1, max_length=100_000)
    """The words it knows."""
    blind: bool = False
    """It was trained without looking."""


@dataclass(frozen=True)
class RouteWalk(Answer):
    """A way through a maze; its text is the actions and where they end. Its score is the log-probability."""

    maze: Maze
    """The map it leads through."""
    path: list[Pose]
    """All poses, the first one too."""
    legs: list[Episode] = field(repr=False)
    """What was done after each sentence."""
    unknown: list[str]
    """Words that were read as unknown ones."""

    @property
    def actions(self) -> list[str]:
        """Of all sentences, one after the other."""
        return [action for leg in self.legs for action in leg.actions]

    @property
    def end(self) -> Pose:
        """Where it ends, and where one looks there."""
        return self.path[-1]

    @property
    def warnings(self) -> list[str]:
        told = [f"unknown words, read as one: {', '.join(map(repr, self.unknown[:10]))}"] if self.unknown else []
        cut = sum(not leg.ended for leg in self.legs)
        return told + ([f"{cut} sentences were cut off after {LONGEST_LEG} actions"] if cut else [])

    def record(self) -> Values:
        record: Values = {"source": self.source, "actions": self.actions, "score": round(self.score, 5)}
        record["path"] = [[pose.x, pose.y, pose.heading] for pose in self.path]
        record["sentences"] = [{"read": leg.command, "actions": leg.actions} for leg in self.legs]
        return record | ({"unknown": self.unknown} if self.unknown else {})


class RouteWalker(Pipeline[TextItem, RouteWalk]):
    """Walks through a maze; `walker.maze` and `walker.start` say which and where from.

    >>> walker = saccade.load("runs/sail")  # doctest: +SKIP
    >>> walker.maze, walker.start = read_maze(Path("map-l.xml")), Pose(24, 21, 0)  # doctest: +SKIP
    >>> walker("turn left and walk to the lamp").end  # doctest: +SKIP
    Pose(x=22, y=21, heading=270)
    """

    options: ClassVar[frozenset[str]] = frozenset()
    maze: Maze | None = None
    """Where it walks; to be set before it is asked."""
    start: Pose | None = None
    """Where every walk begins; to be set, too."""

    def __init__(self, actor: Actor, words: Sequence[str]) -> None:
        self.actor, self.words = actor, frozenset(words)

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "RouteWalker":
        """The model of a folder."""
        settings = folder.settings(RouteSettings)
        return cls(Actor.open(folder, ACTIONS, how, blind=settings.blind), settings.words)

    @property
    def source(self) -> TextSource:
        return cast(TextSource, TASKS["routes"].source)

    @property
    def choice(self) -> Choice:
        return self.actor.acting.runtime.choice

    def answer_items(
        self,
        items: Sequence[TextItem],
        requests: Sequence[Request],
        places: Sequence[int],
        report: Report,
    ) -> list[RouteWalk | UserError]:
        if self.maze is None or self.start is None:
            raise UserError("this model walks through mazes: saccade walk --map FILE --start X,Y,HEADING …")
        maze, start = self.maze, self.maze.check(self.start)
        told = [[item.text[slice(*span)] for span in split_sentences(item.text)] for item in items]
        walked = self.walk([maze] * len(items), [start] * len(items), told, report=report)
        return [
            self._answer(item.text, maze, start, sentences, legs)
            for item, sentences, legs in zip(items, told, walked, strict=True)
        ]

    def walk(
        self,
        mazes: Sequence[Maze],
        starts: Sequence[Pose],
        directions: Sequence[Sequence[str]],
        *,
        look: bool = True,
        report: Report = unreported,
    ) -> list[list[Episode]]:
        """Every route sentence after sentence, each from where the one before it ended."""
        poses, walked = list(starts), [list[Episode]() for _ in starts]
        longest = max(map(len, directions), default=0)
        for number in range(longest):
            rows = [row for row, some in enumerate(directions) if number < len(some)]
            commands = [as_known(directions[row][number], self.words)[0] for row in rows]
            worlds = [MazeWorld(mazes[row], poses[row], text) for row, text in zip(rows, commands, strict=True)]
            legs = self.actor.act(worlds, [world.reset() for world in worlds], LONGEST_LEG, look=look)
            for row, world, leg in zip(rows, worlds, legs, strict=True):
                poses[row] = world.pose
                walked[row].append(leg)
            report(number + 1, longest)
        return walked

    def look(self, answer: RouteWalk) -> Looks:
        """For every choice the words, and what of the halls ahead, to the right, behind and to the left."""
        if not answer.legs:
            raise UserError("there are no directions in it, and nothing was looked at")
        return Looks.join([self.actor.looks_of(leg) for leg in answer.legs])

    def _answer(self, text: str, maze: Maze, start: Pose, sentences: Sequence[str], legs: list[Episode]) -> RouteWalk:
        actions = [action for leg in legs for action in leg.actions]
        path = maze.path(start, actions)
        unknown = [word for sentence in sentences for word in as_known(sentence, self.words)[1]]
        said = f"{' '.join(actions) or '(stays)'} → {path[-1]}"
        score = sum(leg.logprob for leg in legs)
        return RouteWalk(text, said, score, maze, path, legs, list(dict.fromkeys(unknown)), pipeline=self)
