"""Routes: directions that people gave in, a way through a maze out (Mei et al. 2016), as in SAIL."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from saccade.config import Record
from saccade.data.episodes import Episodes, episodes_of
from saccade.data.routes import UNKNOWN, Leg, Route, as_known, frequent_words, read_routes
from saccade.data.text import find
from saccade.errors import UserError, WrongUse
from saccade.evaluate.metrics import Score
from saccade.evaluate.routes import success
from saccade.folder import ModelFolder
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.pipelines.route_walker import RouteWalker
from saccade.tasks.contract import Prepared, Recipe
from saccade.tasks.episodes import EpisodeParts, EpisodesRecipe, action_vocabulary, check_model, prepare_episodes
from saccade.tasks.store import kept_vocabulary
from saccade.tokens.vocabulary import Vocabulary
from saccade.worlds.maps import ACTIONS, CHANNELS, FAR, SIDES, Maze, read_maze

SAW = (len(SIDES), FAR, CHANNELS)


class RoutesData(Record):
    """Maps and the routes through them: `map-NAME.xml` and `sail_NAME.jsonl` of a folder."""

    folder: str = "sail_navigation"
    """Where they are, in the data folder."""
    maps: list[str] = Field(default_factory=lambda: ["grid", "jelly", "l"], min_length=1)
    """Names of all maps."""
    test_map: str = "l"
    """The map that is tested on; all others are trained on."""
    held_out_share: float = Field(0.1, gt=0, lt=1)
    """Share of the routes to train on that select the best checkpoint instead."""
    min_count: int = Field(2, ge=1)
    """How often a word must occur in training to be known; rarer ones are read as one unknown word."""

    @model_validator(mode="after")
    def _one_is_left(self) -> "RoutesData":
        if self.test_map and self.test_map not in self.maps:
            raise ValueError(f"test_map = {self.test_map!r} is not one of {', '.join(self.maps)}")
        if not self.training:
            raise ValueError("all maps are tested on, none is left to train on")
        return self

    @property
    def training(self) -> list[str]:
        """The maps that are trained on."""
        return [name for name in self.maps if name != self.test_map]

    def files(self, name: str) -> tuple[str, str]:
        """The map and the routes of a name."""
        return f"{self.folder}/map-{name}.xml", f"{self.folder}/sail_{name}.jsonl"


class RoutesRecipe(EpisodesRecipe):
    task: Literal["routes"] = "routes"
    data: RoutesData = RoutesData()


class RoutesTask:
    """The task of routes, for the commands."""

    name: ClassVar[str] = "routes"
    recipe: ClassVar[type[Recipe]] = RoutesRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[RoutesRecipe, list[str]]:
        raise WrongUse("routes are trained by a recipe, which names maps: see sail")

    def prepare(
        self, recipe: RoutesRecipe, folders: Sequence[Path], out: Path, *, resume: bool, report: Report = unreported
    ) -> Prepared:
        data = recipe.data
        check_model(recipe.model, SAW)
        routes = [route for name in data.training for route in _routes(data, name, folders)]
        training, held = _held_out(routes, data.held_out_share, recipe.train.seed)
        words = frequent_words([leg.text for route in training for leg in route.legs], data.min_count)
        if resume and (out / "tokenizer.json").exists():
            vocabulary = kept_vocabulary(out)
        else:
            vocabulary = action_vocabulary([*words, UNKNOWN], ACTIONS, out)
        known = frozenset(words)
        tested = [data.test_map] if data.test_map else []
        names = [name for one in (*data.training, *tested) for name in data.files(one)]
        parts = EpisodeParts(
            training=_episodes(training, known, vocabulary, blind=recipe.blind),
            held=_episodes(held, known, vocabulary, blind=recipe.blind),
            figures=lambda actor: {"success": _single(RouteWalker(actor, words), held, bootstrap=0).value},
            figure=None,
            files=names,
            settings={"words": words, "data": data.table()},
            actions=ACTIONS,
            messages=[
                f"maps to train on: {', '.join(data.training)}; {len(training)} routes, {len(held)} held out; "
                f"{len(words)} words"
            ],
            test=(lambda pipeline, _, report: self._scores(pipeline, data, folders, report)) if tested else None,
        )
        return prepare_episodes(recipe, vocabulary, parts)

    def evaluate(
        self,
        pipeline: RouteWalker,
        folder: ModelFolder,
        files: Sequence[Path],
        folders: Sequence[Path],
        request: Request,
        *,
        lowercase: bool | None = None,
        report: Report = unreported,
    ) -> list[Score]:
        """Success after single sentences (place and heading) and after whole routes (place) on the map left out; given
        a map and its routes, on that one."""
        data = RoutesData.read(folder.table("data"), where=str(folder.path / "config.json"))
        if not files:
            if not data.test_map:
                raise WrongUse(f"{folder.path}: names no map to test on; give one: saccade evaluate MODEL MAP ROUTES")
            return self._scores(pipeline, data, folders, report)
        if len(files) != 2:
            raise WrongUse(f"routes are scored on a map and its routes: map.xml routes.jsonl; {len(files)} were given")
        return _both(pipeline, read_routes(files[1], read_maze(files[0])), report)

    def _scores(self, pipeline: RouteWalker, data: RoutesData, folders: Sequence[Path], report: Report) -> list[Score]:
        return _both(pipeline, _routes(data, data.test_map, folders), report)


def _routes(data: RoutesData, name: str, folders: Sequence[Path]) -> list[Route]:
    maze_file, routes_file = data.files(name)
    return read_routes(find(routes_file, folders), read_maze(find(maze_file, folders)))


def _held_out(routes: Sequence[Route], share: float, seed: int) -> tuple[list[Route], list[Route]]:
    """Whole routes, so that no sentence's neighbours are in the other part."""
    order = np.random.default_rng(seed).permutation(len(routes))
    count = max(1, round(share * len(routes)))
    if count >= len(routes):
        raise UserError(f"{len(routes)} routes are too few to train on and to hold some out")
    held = set(order[:count].tolist())
    parts: Mapping[bool, list[Route]] = {True: [], False: []}
    for number, route in enumerate(routes):
        parts[number in held].append(route)
    return parts[False], parts[True]


def _episodes(routes: Sequence[Route], known: frozenset[str], vocabulary: Vocabulary, *, blind: bool) -> Episodes:
    """Every sentence is an episode."""
    legs = [(route.maze, leg) for route in routes for leg in route.legs]
    commands = vocabulary.read([as_known(leg.text, known)[0] for _, leg in legs])
    actions = vocabulary.encode([" ".join(leg.actions) for _, leg in legs])
    views = np.stack([view for maze, leg in legs for view in _seen(maze, leg)])
    found = episodes_of(commands, actions, views, lambda kept: kept, vocabulary.marks)
    return Episodes(found.commands, found.actions, found.views, found.render, found.marks, blind)


def _seen(maze: Maze, leg: Leg) -> list[np.ndarray]:
    return [maze.seen(pose) for pose in maze.path(leg.start, leg.actions)]


def _both(pipeline: RouteWalker, routes: Sequence[Route], report: Report) -> list[Score]:
    return [_single(pipeline, routes, report=report), _whole(pipeline, routes), _random(routes)]


def _single(
    pipeline: RouteWalker, routes: Sequence[Route], *, bootstrap: int = 1000, report: Report = unreported
) -> Score:
    """Each sentence from where it truly begins: place and heading count (Chen and Mooney 2011)."""
    legs = [(route.maze, leg) for route in routes for leg in route.legs]
    mazes, starts, texts = [maze for maze, _ in legs], [leg.start for _, leg in legs], [[leg.text] for _, leg in legs]
    walked = pipeline.walk(mazes, starts, texts, look=False, report=report)
    ends = [maze.path(leg.start, one[0].actions)[-1] for (maze, leg), one in zip(legs, walked, strict=True)]
    reached = [end == leg.end for end, (_, leg) in zip(ends, legs, strict=True)]
    return success("single sentences", reached, what="sentences", bootstrap=bootstrap)


def _whole(pipeline: RouteWalker, routes: Sequence[Route]) -> Score:
    """All sentences of a route, each from where the one before it led: only the place counts."""
    mazes, starts = [route.maze for route in routes], [route.legs[0].start for route in routes]
    walked = pipeline.walk(mazes, starts, [[leg.text for leg in route.legs] for route in routes], look=False)
    reached = []
    for route, legs in zip(routes, walked, strict=True):
        path = route.maze.path(route.legs[0].start, [action for leg in legs for action in leg.actions])
        reached.append(path[-1].place == route.legs[-1].end.place)
    return success("paragraphs", reached, what="routes")


def _random(routes: Sequence[Route]) -> Score:
    """Who does the actions of another sentence, drawn with a fixed seed."""
    legs = [(route.maze, leg) for route in routes for leg in route.legs]
    order = np.random.default_rng(1).permutation(len(legs)).tolist()
    reached = [
        maze.path(leg.start, legs[other][1].actions)[-1] == leg.end
        for (maze, leg), other in zip(legs, order, strict=True)
    ]
    return success("single sentences, random (actions of another sentence)", reached, what="sentences")
