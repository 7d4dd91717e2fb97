"""In-context learning: training pages, held-out pages, and accuracy by family."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from saccade.config import Record
from saccade.data.prompt_families import FAMILIES, WordLists
from saccade.data.prompts import Question, document, question, read_words
from saccade.errors import UserError
from saccade.evaluate.curve import Point, pooled
from saccade.evaluate.metrics import Score
from saccade.pipelines.completer import Completer
from saccade.pipelines.pipeline import Report, Request, unreported

COUNTS = (0, 1, 2, 4, 8)
"""Examples in a prompt that is scored."""
LOOKUP = "lookup"
"""The only family whose query is among its examples; it is reported, but not part of the mean."""
MEAN = "mean"
HELD_OUT_PAGES = 1000


class PromptsConfig(Record):
    """Random pages of examples, from which the model has to infer the task."""

    kind: Literal["prompts"] = "prompts"
    pages: int = Field(100_000, ge=100, le=10_000_000)
    """Number of training pages."""
    questions: int = Field(100, ge=1, le=100_000)
    """Test prompts per family and number of examples."""
    seed: int = Field(1, ge=0, lt=2**40)
    """Random seed of the pages."""


def training_pages(config: PromptsConfig, folders: Sequence[Path]) -> list[str]:
    words, random = read_words(folders), np.random.default_rng([config.seed, 0])
    return [document(random, words) for _ in range(config.pages)]


def held_out_pages(config: PromptsConfig, folders: Sequence[Path]) -> list[str]:
    """Pages of words and tasks that training does not have."""
    words, random = read_words(folders), np.random.default_rng([config.seed, 1])
    families = list(FAMILIES)
    pages = []
    for number in range(HELD_OUT_PAGES):
        asked = question(random, words, families[number % len(families)], int(random.integers(2, 9)))
        pages.append(f"{asked.page}{asked.answer}\n\n")
    return pages


def family_curves(
    completer: Completer,
    config: PromptsConfig,
    words: WordLists,
    report: Report = unreported,
    counts: Sequence[int] = COUNTS,
) -> dict[str, list[Point]]:
    """How many held-out questions are answered exactly right, of each family for each number of examples, and in the
    mean of the families, look-up apart."""
    curves: dict[str, list[Point]] = {family: [] for family in FAMILIES}
    for place, count in enumerate(counts):
        for number, family in enumerate(FAMILIES):
            # The same questions whatever was asked before them.
            random = np.random.default_rng([config.seed, 2, count, number])
            asked = [question(random, words, family, count) for _ in range(config.questions)]
            shown = sum(one.examples for one in asked) / len(asked)
            curves[family].append(Point(count, right_answers(completer, asked), len(asked), shown))
            report(place * len(FAMILIES) + number + 1, len(counts) * len(FAMILIES))
    averaged = [points for family, points in curves.items() if family != LOOKUP]
    return curves | {MEAN: [pooled(points) for points in zip(*averaged, strict=True)]}


def accuracies(
    completer: Completer,
    config: PromptsConfig,
    words: WordLists,
    report: Report = unreported,
    examples: Sequence[int] = COUNTS,
) -> list[Score]:
    """The curves of the families as figures, the mean last for each number of examples."""
    curves = family_curves(completer, config, words, report, examples)
    return [
        Score(f"{name} at {point.k}", point.accuracy, None, _signature(config, name, point), digits=1)
        for points in zip(*curves.values(), strict=True)
        for name, point in zip(curves, points, strict=True)
    ]


def right_answers(completer: Completer, asked: Sequence[Question]) -> int:
    """How many of the questions are answered exactly, white space around it aside."""
    longest = max(len(ids) for ids in completer.vocabulary.encode([one.answer for one in asked])) + 2
    answers = completer.answer([one.page for one in asked], Request(temperature=0, max_tokens=longest, stop=("\n",)))
    return sum(
        not isinstance(answer, UserError) and answer.text.strip() == one.answer.strip()
        for answer, one in zip(answers, asked, strict=True)
    )


def _signature(config: PromptsConfig, name: str, point: Point) -> str:
    fewer = f"|shown:{point.examples:.1f}" if point.examples < point.k else ""
    without = f"|without:{LOOKUP}" if name == MEAN else ""
    return f"examples:{point.k}{fewer}|questions:{config.questions}|seed:{config.seed}{without}"
