"""A model that acts in worlds: a picture of what is seen and a command in, the next action out (show, attend and
interact; Qureshi et al. 2017)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from saccade.errors import UserError
from saccade.folder import ModelFolder, TaskSettings
from saccade.look.filmstrip import Film
from saccade.look.record import Looks
from saccade.pipelines.actor import Actor, Episode
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.pipeline import Pipeline, Report, Request, unreported
from saccade.pipelines.walker import CommandReader
from saccade.runtime.contract import How
from saccade.runtime.open import Choice
from saccade.sites import COMMAND, WORLD
from saccade.sources.picture import PictureSource
from saccade.sources.picture_question import PictureQuestionItem, PictureQuestionSource
from saccade.sources.text import TextSource
from saccade.worlds.contract import Noted, ShownWorld, View, World

if TYPE_CHECKING:
    from PIL.Image import Image

LONGEST = 1000
"""Actions in a world that does not end by itself."""
AT_ONCE = 100
"""Worlds that are acted in side by side."""
LONGEST_COMMAND = 500
"""Characters."""


class AgentSettings(TaskSettings):
    """What a model folder says about the worlds its model was trained in."""

    words: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field(min_length=1, max_length=100_000)
    """The words of commands, in order."""
    actions: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field(min_length=1, max_length=1000)
    """What it can do, in the order of the worlds' actions."""
    blind: bool = False
    """It was trained without looking."""


@dataclass(frozen=True)
class NextAction(Answer):
    """What is done first after a command, where the world looks so; the score is its probability."""

    item: PictureQuestionItem = field(repr=False, compare=False)
    """The picture and the command that were read."""
    read: str
    """The command in the model's words."""
    mended: dict[str, str] = field(default_factory=dict)
    """Words that were read as others, by what was typed."""

    @property
    def image(self) -> "Image":
        return self.item.picture.image

    @property
    def warnings(self) -> list[str]:
        return [f"read {typed!r} as {word!r}" for typed, word in self.mended.items()]


@dataclass(frozen=True)
class Run:
    """What was done in one world, and how it ended."""

    seed: int
    episode: Episode
    whole: list[np.ndarray] = field(default_factory=list, repr=False)
    """Pictures of the whole world before each action, if they were asked for and the world has them."""

    @property
    def reached(self) -> bool:
        """The command was fulfilled."""
        return self.episode.reward > 0

    @property
    def outcome(self) -> str:
        """How it ended, in words."""
        count = f"after {len(self.episode.actions)} actions"
        return f"reached {count}" if self.reached else f"not reached {count}"

    def record(self) -> Values:
        """As plain values."""
        done = self.episode
        return {"seed": self.seed, "command": done.command, "actions": done.actions, "reached": self.reached}


class Agent(Pipeline[PictureQuestionItem, NextAction]):
    """Acts in worlds; asked with a picture and a command, it says what it would do first.

    >>> agent = saccade.load("runs/agent")  # doctest: +SKIP
    >>> agent(("world.png", "go to the red ball")).text  # doctest: +SKIP
    'forward'
    >>> (run,) = agent.play([BabyAI("BabyAI-GoToLocal-v0")], [7])  # doctest: +SKIP
    >>> run.reached  # doctest: +SKIP
    True
    """

    options: ClassVar[frozenset[str]] = frozenset({"best"})

    def __init__(self, actor: Actor, words: Sequence[str]) -> None:
        self.actor, self.reader = actor, CommandReader(tuple(words))

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "Agent":
        """The model of a folder."""
        settings = folder.settings(AgentSettings)
        return cls(Actor.open(folder, settings.actions, how, blind=settings.blind), settings.words)

    @cached_property
    def source(self) -> PictureQuestionSource:
        height, width, channels = self.actor.view
        picture = PictureSource(size_HW=(height, width), channels=1 if channels == 1 else 3)
        return PictureQuestionSource(picture=picture, question=TextSource(longest=LONGEST_COMMAND))

    @property
    def choice(self) -> Choice:
        return self.actor.acting.runtime.choice

    def answer_items(
        self,
        items: Sequence[PictureQuestionItem],
        requests: Sequence[Request],
        places: Sequence[int],
        report: Report,
    ) -> list[NextAction | UserError]:
        found: list[NextAction | UserError] = []
        for number, (item, request) in enumerate(zip(items, requests, strict=True), 1):
            try:
                found.append(self._next(item, request.best))
            except UserError as error:
                found.append(error)
            report(number, len(items))
        return found

    def look(self, answer: NextAction) -> Looks:
        """Which words, and which fields of the picture, the action looked at."""
        view = View(answer.read, answer.item.picture.pixels_HWC)
        return self.actor.looks_of(self.actor.glimpse(view))

    def play(
        self,
        worlds: Sequence[World],
        seeds: Sequence[int],
        *,
        longest: int = LONGEST,
        look: bool = False,
        keep: bool = False,
        report: Report = unreported,
    ) -> list[Run]:
        """Act in each world, begun with the seed beside it, until it is over. `keep`: also what was seen; `look`: and
        what was looked at, and pictures of the whole."""
        noted = [Noted(world, _whole if look else _no_picture) for world in worlds]
        views = [self._first(world, seed) for world, seed in zip(noted, seeds, strict=True)]
        episodes = self.actor.act(noted, views, longest, look=look, keep=keep, report=report)
        return [
            Run(seed, episode, [picture for picture in world.notes if picture is not None])
            for seed, episode, world in zip(seeds, episodes, noted, strict=True)
        ]

    def play_seeds(
        self,
        make: Callable[[], World],
        seeds: Sequence[int],
        *,
        longest: int = LONGEST,
        look: bool = False,
        report: Report = unreported,
    ) -> list[Run]:
        """Act in the world of each seed; some are open at a time."""
        worlds, runs = [make() for _ in range(min(len(seeds), AT_ONCE))], list[Run]()
        for first in range(0, len(seeds), AT_ONCE):
            part = seeds[first : first + AT_ONCE]
            runs += self.play(worlds[: len(part)], part, longest=longest, look=look)
            report(len(runs), len(seeds))
        return runs

    def film(self, run: Run) -> Film:
        """A run that was acted with `look`, to be drawn."""
        done, grid = run.episode, self.actor.grid
        words = self.actor.words_of(done)
        return Film(
            words=words,
            actions=done.choices,
            seen=[view.picture_HWC for view in done.views],
            word_weights=done.looks[COMMAND],
            field_weights=[weights_S.reshape(grid.height, grid.width) for weights_S in done.looks[WORLD]],
            whole=run.whole,
            outcome=run.outcome,
        )

    def _first(self, world: World, seed: int) -> View:
        if tuple(world.actions) != self.actor.actions:
            theirs, mine = ", ".join(world.actions), ", ".join(self.actor.actions)
            raise UserError(f"this world's actions are {theirs}; the model was trained with {mine}")
        view = world.reset(seed)
        if view.picture_HWC.shape != self.actor.view:
            raise UserError(f"this world's pictures are {view.picture_HWC.shape}, not {self.actor.view}: H, W, C")
        self.reader.insist(view.command)
        return view

    def _next(self, item: PictureQuestionItem, best: int) -> NextAction:
        read, mended = self.reader.read(item.question.text)
        chances = self.actor.next_action(View(read, item.picture.pixels_HWC))[:best]
        name = self.source.label(item)
        first, *others = (
            NextAction(name, action, chance, item, read, mended, pipeline=self) for action, chance in chances
        )
        first.others.extend(others)
        return first


def _whole(world: World) -> np.ndarray | None:
    return world.whole() if isinstance(world, ShownWorld) else None


def _no_picture(world: World) -> np.ndarray | None:  # noqa: ARG001
    return None
