"""A language model programmed by a prompt: a template and examples make a page, what follows it is the answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from saccade.data.text import Pair
from saccade.errors import UserError
from saccade.evaluate.curve import Point
from saccade.pipelines.answer import Values
from saccade.pipelines.completer import Completer, Completion
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.pipelines.template import PromptTemplate, draw_examples, fitted

ROOM = 16
"""The longest answer is a multiple of so many tokens."""


@dataclass(frozen=True)
class Page:
    """A prompt as a model can read it."""

    query: str
    prompt: str
    examples: int
    left_out: int
    """Examples that did not fit."""
    room: int
    """Tokens of the longest answer."""


@dataclass(frozen=True)
class Answered:
    """What the model wrote where the answer was due."""

    page: Page
    text: str
    completion: Completion

    def record(self) -> Values:
        return {
            "input": self.page.query,
            "examples": self.page.examples,
            "left_out": self.page.left_out,
        } | (self.completion.record() | {"text": self.text})


class Program:
    """`program.run(["dog"], [("cat", "cats"), …])`"""

    def __init__(
        self,
        completer: Completer,
        template: PromptTemplate,
        *,
        temperature: float | None = None,
        seed: int = 0,
        longest: int | None = None,
    ) -> None:
        """`longest`: tokens of an answer; by default what a query or an example's output needs, and some more."""
        self.completer, self.template, self.longest = completer, template, longest
        self.temperature, self.seed = temperature, seed
        self.sizes: dict[str, int] = {}
        """Tokens of the texts met so far: examples come again with every query."""

    def run(
        self, queries: Sequence[str], examples: Sequence[Pair], *, first: int = 0, report: Report = unreported
    ) -> list[Answered | UserError | None]:
        """The answer to every query, or why there is none; none to an empty one. `first` is the first one's place in
        a longer input."""
        found: dict[int, Answered | UserError] = {}
        pages: dict[int, Page] = {}
        for place, query in enumerate(queries, first):
            if query.strip():
                try:
                    pages[place] = self.page(query, examples)
                except UserError as error:
                    found[place] = error
        answers = self.answer(list(pages.values()), numbers=list(pages), report=report)
        found |= zip(pages, answers, strict=True)
        return [found.get(place) for place in range(first, first + len(queries))]

    def page(self, query: str, examples: Sequence[Pair]) -> Page:
        """The query's prompt, examples left out from the front where it would not fit with its answer."""
        query, room = query.strip(), self.longest
        if room is None:
            needed = max(self._size(text) for text in (query, *(output for _, output in examples)))
            room = ROOM * (needed // ROOM + 1)
        # Whatever the answer may need, half of the context is the prompt's.
        context = self.completer.context
        most = context - min(room, context // 2)

        def fits(prompt: str) -> bool:
            return len(self.completer.begin(prompt)) <= most

        prompt, left_out = fitted(self.template, examples, query, fits)
        return Page(query, prompt, len(examples) - left_out, left_out, room)

    def answer(
        self, pages: Sequence[Page], *, numbers: Sequence[int] | None = None, report: Report = unreported
    ) -> list[Answered | UserError]:
        """An answer for every page; `numbers` are the queries' places in a longer input."""
        shared = Request(temperature=self.temperature or 0, seed=self.seed, stop=(self.template.ends,))
        # How far an answer goes depends on its own page alone.
        requests = [replace(shared, max_tokens=page.room) for page in pages]
        answers = self.completer.answer([page.prompt for page in pages], requests, numbers=numbers, report=report)
        return [
            answer if isinstance(answer, UserError) else Answered(page, answer.text.strip(), answer)
            for page, answer in zip(pages, answers, strict=True)
        ]

    def test(
        self,
        examples: Sequence[Pair],
        tests: Sequence[Pair],
        counts: Sequence[int],
        report: Report = unreported,
    ) -> list[Point]:
        """How often a test's output is written exactly, for each number of examples; white space around it aside."""
        points = []
        for place, count in enumerate(counts):
            pages = []
            for number, (query, _) in enumerate(tests):
                try:
                    shown = draw_examples(examples, query, count, seed=self.seed, number=number)
                    pages.append(self.page(query, shown))
                except UserError as error:
                    raise UserError(f"test {number + 1} ({query[:40]!r}): {error}") from None
            report_part = _part_of(report, place * len(tests), len(counts) * len(tests))
            answers = self.answer(pages, report=report_part)
            right = sum(
                isinstance(answer, Answered) and answer.text == output.strip()
                for answer, (_, output) in zip(answers, tests, strict=True)
            )
            points.append(Point(count, right, len(tests), sum(page.examples for page in pages) / len(pages)))
        return points

    def _size(self, text: str) -> int:
        if text not in self.sizes:
            self.sizes[text] = len(self.completer.vocabulary.encode([text])[0])
        return self.sizes[text]


def _part_of(report: Report, before: int, total: int) -> Report:
    """The report of a part as one of the whole."""
    return lambda done, _: report(before + done, total)
