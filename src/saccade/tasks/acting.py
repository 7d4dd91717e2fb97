"""Acting: a picture of the world and a command in, one action after the other out, learnt from demonstrations (show,
attend and interact; Qureshi et al. 2017), as in BabyAI."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from saccade.config import Record
from saccade.data.demonstrations import Make, commands_of, demonstrations, episodes_from
from saccade.errors import WrongUse
from saccade.evaluate.metrics import Score
from saccade.evaluate.pointing import pointing
from saccade.evaluate.routes import success
from saccade.folder import ModelFolder
from saccade.pipelines.advised import demonstrate_after
from saccade.pipelines.agent import Agent
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.sites import WORLD
from saccade.tasks.contract import Prepared, Recipe
from saccade.tasks.episodes import EpisodeParts, EpisodesRecipe, action_vocabulary, check_model, prepare_episodes
from saccade.tasks.learner import Learner
from saccade.tasks.store import kept_vocabulary
from saccade.worlds.aimless import reached_at_random
from saccade.worlds.contract import Noted, PackedWorld, PointedWorld, World
from saccade.worlds.demonstrations import Straying, demonstrate
from saccade.worlds.opening import maker_of, short_name

TEST, VALID, TRAIN = 0, 100_000, 1_000_000
"""The first seeds of three kinds of worlds: no world of one part is in another."""
POINTED = 100
"""Worlds of each level in which it is noted where it looks."""


class LevelData(Record):
    """A kind of world."""

    name: str
    """Of BabyAI, such as BabyAI-GoToLocal-v0, or one that a program added."""
    worlds: int = Field(ge=1, lt=10_000_000)
    """Demonstrations to train on, each in a world of its own."""


class ActingData(Record):
    """Which worlds, and how demonstrations are made in them."""

    levels: list[LevelData] = Field(min_length=1)
    """All kinds of worlds; one model acts in all of them."""
    longest: int = Field(128, ge=1)
    """Actions of a demonstration, at most; in validation too."""
    stray_share: float = Field(0.5, ge=0, le=1)
    """Share of the demonstrations that stray at random now and then, with good advice all the time."""
    stray_rate: float = Field(0.15, ge=0, le=1)
    """How often, of all steps, these begin to stray."""
    valid: int = Field(50, ge=1, lt=100_000)
    """Worlds of each level that select the best checkpoint."""
    test: int = Field(500, ge=1, lt=100_000)
    """Unseen worlds of each level to test in."""
    processes: int = Field(0, ge=0, le=1024)
    """How many make demonstrations; 0: one for each core."""

    @property
    def straying(self) -> Straying:
        return Straying(self.stray_share, self.stray_rate)


class ActingRecipe(EpisodesRecipe):
    task: Literal["acting"] = "acting"
    data: ActingData
    learner: str = ""
    """A trained agent with the same sizes and words: the training goes on from its weights, and in `learner_share` of
    the worlds it acts by itself and is advised (Ross et al. 2011)."""
    learner_share: float = Field(0.6, ge=0, le=1)
    """Of the demonstrations."""


class ActingTask:
    """The task of acting, for the commands."""

    name: ClassVar[str] = "acting"
    recipe: ClassVar[type[Recipe]] = ActingRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[ActingRecipe, list[str]]:
        raise WrongUse("acting is trained by a recipe, which names worlds: see agent")

    def prepare(
        self, recipe: ActingRecipe, folders: Sequence[Path], out: Path, *, resume: bool, report: Report = unreported
    ) -> Prepared:
        data = recipe.data
        first = maker_of(data.levels[0].name)()
        check_model(recipe.model, first.reset(TRAIN).picture_HWC.shape)
        learner = Learner.read(recipe.learner) if recipe.learner else None
        makers = [partial(demonstrate, maker_of(level.name), data.straying, data.longest) for level in data.levels]
        cores = data.processes or os.cpu_count() or 1
        made = demonstrations(out / "prepared" / "train", *_jobs(recipe, makers, learner), cores, report, resume=resume)
        held = [range(VALID, VALID + data.valid) for _ in data.levels]
        shown = demonstrations(out / "prepared" / "valid", makers, held, 1, unreported, resume=resume)
        words = sorted({word for command in (*commands_of(made), *commands_of(shown)) for word in command.split()})
        if learner is not None:
            words = learner.insist(words, first.actions)
            (out / "tokenizer.json").write_text(learner.folder.tokenizer, encoding="utf-8")
            vocabulary = kept_vocabulary(out)
        elif resume and (out / "tokenizer.json").exists():
            vocabulary = kept_vocabulary(out)
        else:
            vocabulary = action_vocabulary(words, first.actions, out)
        render = first.unpack if isinstance(first, PackedWorld) else np.asarray
        training, valid = (
            episodes_from(some, vocabulary, first.actions, render, blind=recipe.blind) for some in (made, shown)
        )
        parts = EpisodeParts(
            training=training,
            held=valid,
            figures=lambda actor: _validated(Agent(actor, words), data),
            figure=None,
            files=[],
            settings={"words": words, "actions": list(first.actions), "data": data.table()},
            actions=first.actions,
            messages=[f"{level.name}: {level.worlds:,} worlds" for level in data.levels],
            test=lambda pipeline, _, report: _scores(pipeline, data, report),
            start=None if learner is None else learner.fill,
        )
        return prepare_episodes(recipe, vocabulary, parts)

    def evaluate(
        self,
        pipeline: Agent,
        folder: ModelFolder,
        files: Sequence[Path],
        folders: Sequence[Path],
        request: Request,
        *,
        lowercase: bool | None = None,
        report: Report = unreported,
    ) -> list[Score]:
        """Success in unseen worlds, level by level, beside somebody who acts at random; and where it looked."""
        if files:
            raise WrongUse("an agent is tested in worlds, not on files: saccade evaluate MODEL")
        data = ActingData.read(folder.table("data"), where=str(folder.path / "config.json"))
        return _scores(pipeline, data, report)


def _jobs(recipe: ActingRecipe, makers: Sequence[Make], learner: Learner | None) -> tuple[list[Make], list[range]]:
    """Who demonstrates, and in which worlds: the last ones of each level are the learner's."""
    done: list[tuple[Make, range]] = []
    for level, make in zip(recipe.data.levels, makers, strict=True):
        own = round(level.worlds * recipe.learner_share) if learner is not None else 0
        last = TRAIN + level.worlds
        done.append((make, range(TRAIN, last - own)))
        if learner is not None:
            led = partial(demonstrate_after, learner.folder.path, maker_of(level.name), recipe.data.longest)
            done.append((led, range(last - own, last)))
    return [make for make, seeds in done if seeds], [seeds for _, seeds in done if seeds]


def _validated(agent: Agent, data: ActingData) -> dict[str, float]:
    """The mean success of all levels, and that of each."""
    found = {}
    for level in data.levels:
        seeds = range(VALID, VALID + data.valid)
        runs = agent.play_seeds(maker_of(level.name), seeds, longest=data.longest)
        found[short_name(level.name)] = 100 * sum(run.reached for run in runs) / len(runs)
    return {"success": sum(found.values()) / len(found)} | (found if len(found) > 1 else {})


def _scores(agent: Agent, data: ActingData, report: Report) -> list[Score]:
    found, beside, total = [], [], len(data.levels) * data.test
    for number, level in enumerate(data.levels):
        part = _part_of(report, number * data.test, total)
        runs = agent.play_seeds(maker_of(level.name), range(TEST, TEST + data.test), report=part)
        found.append(success(f"success, {short_name(level.name)}", [run.reached for run in runs], what="worlds"))
        beside.append(_random(level.name, data.test))
    return found + beside + _pointed(agent, data)


def _part_of(report: Report, before: int, total: int) -> Report:
    """The report of a part as one of the whole."""
    return lambda done, _: report(before + done, total)


def _random(name: str, count: int) -> Score:
    world = maker_of(name)()
    reached = [reached_at_random(world, seed) for seed in range(TEST, TEST + count)]
    return success(f"success, {short_name(name)}, at random", reached, what="worlds")


def _pointed(agent: Agent, data: ActingData) -> list[Score]:
    """How often the largest weight is on the goal when it is in view: where worlds know where their goals are."""
    scores = []
    seeds = range(TEST, TEST + min(data.test, POINTED))
    for level in data.levels:
        noted = [Noted(maker_of(level.name)(), _goals) for _ in seeds]
        runs = agent.play(noted, seeds, look=True)
        goals = [fields for world in noted for fields in world.notes]
        looks = [weights_S for run in runs for weights_S in run.episode.looks[WORLD]]
        scores += pointing(short_name(level.name), goals, looks, agent.actor.grid)
    return scores


def _goals(world: World) -> list[tuple[int, int]]:
    return world.goals() if isinstance(world, PointedWorld) else []
