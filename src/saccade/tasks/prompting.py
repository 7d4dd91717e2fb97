"""Programming a language model by examples: pages to learn from, prompts made of examples, how often it works."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from saccade.config import Record
from saccade.data.prompt_families import FAMILIES, Words
from saccade.data.prompts import document, question, read_words
from saccade.errors import UserError
from saccade.evaluate.metrics import Score
from saccade.tasks.completer import Completer
from saccade.tasks.contract import Report, Request, unreported

COUNTS = (0, 1, 2, 4, 8)
"""Examples in a prompt that is scored."""
LOOKUP = "lookup"
"""The one family whose query is among its examples; it is reported, and not in the mean."""
HELD_OUT_PAGES = 1000


class PromptsConfig(Record):
    """Pages of examples, drawn anew: the task has to be read from them."""

    kind: Literal["prompts"] = "prompts"
    pages: int = Field(100_000, ge=100, le=10_000_000)
    """Pages to train on."""
    questions: int = Field(100, ge=1, le=100_000)
    """Prompts of each family, for each number of examples, when the model is scored."""
    seed: int = Field(1, ge=0, lt=2**40)
    """Same seed, same pages."""


def training_pages(config: PromptsConfig, folders: Sequence[Path]) -> list[str]:
    words, random = read_words(folders), np.random.default_rng([config.seed, 0])
    return [document(random, words) for _ in range(config.pages)]


def held_out_pages(config: PromptsConfig, folders: Sequence[Path]) -> list[str]:
    """Pages of words and tasks that training does not have."""
    words, random = read_words(folders), np.random.default_rng([config.seed, 1])
    families = list(FAMILIES)
    pages = []
    for number in range(HELD_OUT_PAGES):
        prompt, answer = question(random, words, families[number % len(families)], int(random.integers(2, 9)))
        pages.append(f"{prompt}{answer}\n\n")
    return pages


def accuracies(
    completer: Completer,
    config: PromptsConfig,
    words: Words,
    report: Report = unreported,
    examples: Sequence[int] = COUNTS,
) -> list[Score]:
    """The share of held-out questions answered exactly right: of each family and their mean, for each number of
    examples; the look-up family apart."""
    scores, total = [], len(examples) * len(FAMILIES)
    for place, count in enumerate(examples):
        found: dict[str, float] = {}
        for number, family in enumerate(FAMILIES):
            # The same questions whatever was asked before them.
            random = np.random.default_rng([config.seed, 2, count, number])
            asked = [question(random, words, family, count) for _ in range(config.questions)]
            found[family] = share_right(completer, asked)
            report(place * len(FAMILIES) + number + 1, total)
        mean = sum(share for family, share in found.items() if family != LOOKUP) / (len(found) - 1)
        how = f"examples:{count}|questions:{config.questions}|seed:{config.seed}"
        scores += [Score(f"{family} at {count}", 100 * share, None, how, digits=1) for family, share in found.items()]
        scores.append(Score(f"mean at {count}", 100 * mean, None, f"{how}|without:{LOOKUP}", digits=1))
    return scores


def share_right(completer: Completer, asked: Sequence[tuple[str, str]]) -> float:
    """How many of the questions (prompt, answer) are answered exactly, white space around it aside."""
    longest = max(len(completer.vocabulary.encode([answer])[0]) for _, answer in asked) + 2
    answers = completer.answer([prompt for prompt, _ in asked], Request(max_tokens=longest, stop=("\n",)))
    right = 0
    for answer, (_, expected) in zip(answers, asked, strict=True):
        right += not isinstance(answer, UserError) and answer.text.strip() == expected.strip()
    return right / len(asked)
