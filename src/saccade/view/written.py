"""How an answer was written, step by step: what was heard of its search, as the page shows it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from saccade.axes import END_LABEL
from saccade.decode.listen import PartialText, SearchStep
from saccade.decode.row import Text
from saccade.tokens.vocabulary import Vocabulary

Values = dict[str, Any]
MOST_TEXTS = 40
"""Searches of one input whose steps are kept."""
MOST_STEPS = 600
"""Of one search."""
SHOWN_BEGINNINGS = 8


@dataclass
class Searches:
    """Hears the searches of one input."""

    vocabulary: Vocabulary | None
    report: Callable[[Values], None]
    """Told of each step as it is made: the texts so far."""
    say: Callable[[str], str] = str
    """How what is written is shown: phonemes are written as signs."""
    heard: dict[Text, list[SearchStep]] = field(default_factory=dict)

    def __call__(self, step: SearchStep) -> None:
        if step.text not in self.heard and len(self.heard) >= MOST_TEXTS:
            return
        steps = self.heard.setdefault(step.text, [])
        if len(steps) < MOST_STEPS:
            steps.append(step)
        if step.beginnings:
            self.report({"text": self._text(step.beginnings[0].tokens), "step": len(steps), "part": len(self.heard)})

    def _text(self, tokens: Sequence[int]) -> str:
        return self.say(self.vocabulary.decode(tokens)) if self.vocabulary is not None else ""

    def of(self, tokens: Sequence[int]) -> list[SearchStep]:
        """The steps of the search that found this text."""
        for text, steps in self.heard.items():
            if any(one.tokens == list(tokens) for one in text.best):
                return steps
        return []

    def values(self, tokens: Sequence[int]) -> list[Values]:
        """The steps on the way to this text, each with what else could have been written."""
        vocabulary = self.vocabulary
        steps = self.of(tokens) if vocabulary is not None else []
        assert vocabulary is not None or not steps
        found = []
        for number, step in enumerate(steps):
            if vocabulary is None:
                break
            place = len(step.beginnings[0].tokens) if step.beginnings else 0
            token = tokens[place] if place < len(tokens) else vocabulary.marks.end
            follows = steps[number + 1].beginnings if number + 1 < len(steps) else []
            mine = next((one for one in step.beginnings if one.tokens == list(tokens[:place])), None)
            if mine is None:  # the text had ended, and the search went on for the others
                break
            found.append(
                {
                    "place": place,
                    "chosen": self._piece(vocabulary, token),
                    "likely": [self._likely(vocabulary, one, token, mine.tokens) for one in mine.likely],
                    "rest": mine.rest,
                    "beginnings": [
                        self._beginning(one, mine, follows, vocabulary) for one in step.beginnings[:SHOWN_BEGINNINGS]
                    ],
                }
            )
        return found

    def _likely(self, vocabulary: Vocabulary, one: tuple[int, float], token: int, before: Sequence[int]) -> Values:
        return {
            "text": self._piece(vocabulary, one[0]),
            "logp": one[1],
            "chosen": one[0] == token,
            "ends": one[0] == vocabulary.marks.end,
            "prefix": "" if one[0] == vocabulary.marks.end else vocabulary.decode([*before, one[0]]),
        }

    def _beginning(
        self, one: PartialText, mine: PartialText, follows: Sequence[PartialText], vocabulary: Vocabulary
    ) -> Values:
        kept = not follows or any(later.tokens[: len(one.tokens)] == one.tokens for later in follows)
        text = self._text(one.tokens)
        return {"text": text, "logprob": one.logprob, "chosen": one is mine, "kept": kept}

    def _piece(self, vocabulary: Vocabulary, token: int) -> str:
        """A token as text."""
        if token == vocabulary.marks.end:
            return END_LABEL
        return self.say(vocabulary.pieces([token])[0])

    def finished(self, tokens: Sequence[int]) -> list[Values]:
        """All texts that this search finished, best first."""
        for text in self.heard:
            if any(one.tokens == list(tokens) for one in text.best):
                return [
                    {
                        "text": self._text(one.tokens),
                        "logprob": one.logprob,
                        "score": one.score,
                        "chosen": one.tokens == list(tokens),
                        "ended": one.finished,
                    }
                    for one in text.best
                ]
        return []
