"""Words with times as subtitles: SubRip (SRT) and WebVTT."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

LONGEST_CUE = 6.0
"""Seconds."""
WIDEST_CUE = 42
"""Characters, as subtitles have them on a line."""
GAP = 1.0
"""Seconds between two words that end a cue."""


class TimedWord(Protocol):
    """A word and when it was said, in seconds."""

    @property
    def text(self) -> str: ...

    @property
    def start(self) -> float: ...

    @property
    def end(self) -> float: ...


@dataclass(frozen=True)
class Cue:
    """What is shown at once."""

    text: str
    start: float
    end: float


def cues(words: Sequence[TimedWord]) -> list[Cue]:
    """Words gathered, until they are too many, too long, or a pause follows."""
    found: list[Cue] = []
    for word in words:
        last = found[-1] if found else None
        if (
            last is not None
            and word.start - last.end < GAP
            and word.end - last.start <= LONGEST_CUE
            and len(last.text) + 1 + len(word.text) <= WIDEST_CUE
        ):
            found[-1] = Cue(f"{last.text} {word.text}", last.start, word.end)
        else:
            found.append(Cue(word.text, word.start, word.end))
    return found


def srt(words: Sequence[TimedWord]) -> str:
    blocks = [
        f"{number}\n{_time(cue.start, ',')} --> {_time(cue.end, ',')}\n{cue.text}\n"
        for number, cue in enumerate(cues(words), 1)
    ]
    return "\n".join(blocks)


def vtt(words: Sequence[TimedWord]) -> str:
    blocks = [f"{_time(cue.start, '.')} --> {_time(cue.end, '.')}\n{_escaped(cue.text)}\n" for cue in cues(words)]
    return "\n".join(["WEBVTT\n", *blocks])


def _time(seconds: float, point: str) -> str:
    whole = round(1000 * seconds)
    return f"{whole // 3_600_000:02}:{whole // 60_000 % 60:02}:{whole // 1000 % 60:02}{point}{whole % 1000:03}"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
