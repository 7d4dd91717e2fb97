"""The form of a prompt made of examples: what stands before, between and after them. Free of torch."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from pydantic import Field, model_validator

from saccade.config import Record, read_toml
from saccade.data.text import Pair
from saccade.errors import UserError, WrongUse, did_you_mean


class PromptTemplate(Record):
    """How examples and a query are written down. The defaults give "Input: cat\\nOutput: cats\\n"."""

    instruction: str = ""
    """Says what is to be done, on a line of its own before the examples."""
    input: str = "Input:"
    """Label of an input; it may be empty."""
    output: str = "Output:"
    """Label of an output; it may be empty."""
    between: str = "\n"
    """Stands between an input and the label of its output."""
    after: str = Field("\n", min_length=1)
    """Stands after each example."""
    stop: str | None = Field(None, min_length=1)
    """Ends an answer; by default the line break, or what stands after an example where that does not begin with one."""
    examples: tuple[Pair, ...] = ()
    """Examples of its own, for when no others are given."""

    @model_validator(mode="after")
    def _an_answer_has_a_place(self) -> "PromptTemplate":
        if not self.between and not self.output:
            raise ValueError("between and output are both empty: nothing tells where an input ends")
        if broken := [pair for pair in self.examples if not pair[0].strip() or not pair[1].strip()]:
            raise ValueError(f"examples: {list(broken[0])} lacks an input or an output")
        return self

    @property
    def ends(self) -> str:
        """The string that ends an answer."""
        return self.stop or ("\n" if self.after.startswith("\n") else self.after)

    def example(self, pair: Pair) -> str:
        return f"{self._question(pair[0])}{' ' if self.output else ''}{pair[1]}{self.after}"

    def prompt(self, examples: Sequence[Pair], query: str) -> str:
        """The page up to where the answer is due. The space before the answer is left to the model, to which " cats"
        may be one token."""
        head = self.instruction if not self.instruction or self.instruction.endswith("\n") else f"{self.instruction}\n"
        return (head + "".join(map(self.example, examples)) + self._question(query)).rstrip(" ")

    def _question(self, text: str) -> str:
        return f"{self.input}{' ' if self.input else ''}{text}{self.between}{self.output}"


BUILT_IN = {
    # The labels are those of Brown et al. 2020, whose sentences are left for people to try.
    "poor-english": PromptTemplate(
        input="Poor English input:",
        output="Good English output:",
        examples=(
            ("She go to school.", "She goes to school."),
            ("I buyed a new car.", "I bought a new car."),
            ("Tom want to sleep.", "Tom wants to sleep."),
        ),
    )
}


def read_template(name: str) -> PromptTemplate:
    """A template by its file, or one that comes with Saccade by its name."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    if Path(name).suffix == ".toml" or Path(name).exists():
        return PromptTemplate.read(read_toml(Path(name)), where=name)
    raise WrongUse(
        f"no template {name!r}{did_you_mean(name, BUILT_IN)}; "
        f"give a file TEMPLATE.toml, or one of {', '.join(BUILT_IN)}"
    )


def fitted(
    template: PromptTemplate, examples: Sequence[Pair], query: str, fits: Callable[[str], bool]
) -> tuple[str, int]:
    """The prompt with as many of the examples as fit, and how many were left out, from the front."""
    everything = range(len(examples) + 1)
    left_out = bisect_left(everything, True, key=lambda count: fits(template.prompt(examples[count:], query)))
    if left_out > len(examples):
        raise UserError("too long for the model's context, even without examples")
    return template.prompt(examples[left_out:], query), left_out


def draw_examples(examples: Sequence[Pair], query: str, count: int, *, seed: int, number: int) -> list[Pair]:
    """So many of the examples, never the query itself. More of them are the same ones and others, so that what
    accuracies for two counts differ by is the count."""
    others = [pair for pair in examples if pair[0] != query]
    order = np.random.default_rng([seed, number]).permutation(len(others))
    return [others[place] for place in order[:count].tolist()]


def most_examples(examples: Sequence[Pair], tests: Sequence[Pair]) -> int:
    """How many examples every query can have without itself among them."""
    times = Counter(text for text, _ in examples)
    return len(examples) - max(times[query] for query, _ in tests)
