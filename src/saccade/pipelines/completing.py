"""A completion under way: what ended it, and what of it can be shown already."""

from collections.abc import Sequence
from dataclasses import dataclass

from saccade.decode.row import Text
from saccade.pipelines.pipeline import Request
from saccade.tokens.vocabulary import Vocabulary

UNFINISHED = "\ufffd"
"""What the first bytes of a character look like while the others are not there yet."""


@dataclass
class Completing:
    """One text of a session, with the prompt and the request it belongs to."""

    place: int
    """Among the texts that were asked for."""
    prompt: str
    ids: list[int]
    """The prompt as the model reads it."""
    request: Request
    text: Text
    vocabulary: Vocabulary
    stopped: bool = False
    """A stop string ended it."""
    shown: int = 0
    """Characters already given away."""

    @property
    def ended(self) -> str:
        """end: the model ended it; stop: a stop string; length: the limit; empty while it goes on."""
        if self.stopped:
            return "stop"
        return "end" if self.text.finished else "length" if self.text.over else ""

    def finds_stop(self) -> bool:
        """Whether a stop string ends the text with its newest token."""
        stops, tokens = self.request.stop, self.text.tokens
        if stops and not self.text.finished:
            # A stop string ends at the newest token: only the last tokens need to be read again.
            reach = max(len(stop.encode()) for stop in stops) + 8
            self.stopped = _cut(self._decoded(tokens[-reach:], len(tokens) > reach), stops)[1]
        return self.stopped

    def whole(self) -> str:
        """All of the text, up to a stop string. A beam is searched to its end before one is looked for."""
        text, stopped = _cut(self._decoded(self.text.tokens), self.request.stop)
        self.stopped = self.stopped or stopped
        return text

    def news(self) -> str:
        """What can be shown and was not: half a character, or what may become a stop string, waits."""
        whole = self.whole()
        if not self.ended:
            whole = whole.rstrip(UNFINISHED)
            held = max((_overlap(whole, stop) for stop in self.request.stop), default=0)
            whole = whole[: len(whole) - held]
        news = whole[self.shown :]
        self.shown = max(self.shown, len(whole))
        return news

    def _decoded(self, tokens: Sequence[int], continues: bool = False) -> str:
        """`continues`: other tokens stand before these."""
        return self.vocabulary.decode(tokens, continues=continues or bool(self.prompt))


def _cut(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """The text up to the first stop string in it, and whether there was one."""
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return (text[: min(places)], True) if places else (text, False)


def _overlap(text: str, stop: str) -> int:
    """How many of the text's last characters may be the beginning of the stop string."""
    return next((size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0)
