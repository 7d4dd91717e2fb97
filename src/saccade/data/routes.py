"""Routes through mazes that people described: SAIL's, sentence by sentence with the actions that follow."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from saccade.data.text import read_lines
from saccade.errors import UserError
from saccade.worlds.maps import ACTIONS, Maze, Pose

UNKNOWN = "[unknown]"
"""What stands for rare words; it has a vector like any other word."""


@dataclass(frozen=True)
class Leg:
    """A sentence of a route."""

    text: str
    actions: tuple[str, ...]
    start: Pose
    end: Pose


@dataclass(frozen=True)
class Route:
    """What one person said of one way through one maze."""

    name: str
    maze: Maze
    legs: tuple[Leg, ...]


def read_routes(path: Path, maze: Maze) -> list[Route]:
    """JSON lines: id, sentences with text, actions and states (x, y, heading). They must fit the map."""
    routes = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            row = json.loads(line)
            legs = tuple(_leg(sentence, maze) for sentence in row["sentences"])
            routes.append(Route(str(row["id"]), maze, legs))
        except (ValueError, KeyError, TypeError, UserError) as error:
            raise UserError(f"{path}, line {number}: not a route of SAIL on {maze.name}: {error}") from None
    return routes


def _leg(sentence: dict[str, object], maze: Maze) -> Leg:
    text, actions, states = (sentence[key] for key in ("text", "actions", "states"))
    if not isinstance(text, str) or not isinstance(actions, list) or not isinstance(states, list):
        raise ValueError("a sentence has text, actions and states")
    if len(states) != len(actions) + 1 or not set(actions) <= set(ACTIONS):
        raise ValueError(f"{len(actions)} actions, of {', '.join(ACTIONS)}, have {len(actions) + 1} states")
    poses = [maze.check(Pose(*state)) for state in states]
    return Leg(text, tuple(actions), poses[0], poses[-1])


def words_of(text: str) -> list[str]:
    """The words of a sentence, in small letters; punctuation stands alone or is dropped."""
    kept = "".join(letter if letter.isalnum() or letter in "-'" else " " for letter in text.lower())
    return kept.split()


def frequent_words(texts: Sequence[str], least: int) -> list[str]:
    """The words that occur at least so often, in order."""
    counts = Counter(word for text in texts for word in words_of(text))
    return sorted(word for word, count in counts.items() if count >= least)


def as_known(text: str, known: frozenset[str]) -> tuple[str, list[str]]:
    """The words of a text with UNKNOWN in place of those that are not known, and which these are."""
    words = words_of(text)
    unknown = [word for word in dict.fromkeys(words) if word not in known]
    return " ".join(word if word in known else UNKNOWN for word in words), unknown
