"""Which search, with which settings: one call for greedy, beam and sampling."""

from collections.abc import Sequence
from typing import TypedDict

from pydantic import Field

from saccade.config import Record
from saccade.decode.beam import beam
from saccade.decode.greedy import greedy
from saccade.decode.hypothesis import Hypothesis
from saccade.decode.sample import Draw, Drawing
from saccade.runtime.contract import ArrayMemory, DecoderLike, S
from saccade.tokens.marks import Marks


class SearchConfig(Record):
    """How a decoder's text is found."""

    beam: int = Field(5, ge=1, le=1000)
    """Beam width: hypotheses kept at every step; 1 is greedy search."""
    alpha: float = Field(0.6, ge=0, le=10)
    """Length penalty: 0 ranks by probability alone, more favours longer texts."""
    factor: float = Field(2.0, ge=0, le=100)
    """At most factor x source tokens + extra tokens are written."""
    extra: int = Field(20, ge=1, le=100_000)
    """See factor."""
    temperature: float | None = Field(None, gt=0, le=1000)
    """Sample instead of searching. Below 1 favours likely tokens, above 1 gives more varied texts."""
    seed: int = Field(0, ge=0, lt=2**40)
    """Same seed, same samples."""

    def limit(self, source: int) -> int:
        """The longest text for a source of so many tokens: its own length decides, never its batch's."""
        return int(self.factor * source) + self.extra


class _Shared(TypedDict):
    """What every search is told."""

    prefixes: Sequence[Sequence[int]]
    limits: Sequence[int]
    marks: Marks
    alpha: float


def search(
    decoder: DecoderLike[S],
    memory: ArrayMemory | None,
    config: SearchConfig,
    *,
    marks: Marks,
    prefixes: Sequence[Sequence[int]],
    limits: Sequence[int],
    numbers: list[int],
) -> list[list[Hypothesis]]:
    """The texts found for every row of the memory, best first; `numbers` are the rows' places in the whole input."""
    shared: _Shared = {"prefixes": prefixes, "limits": limits, "marks": marks, "alpha": config.alpha}
    if config.temperature is not None:
        draw = Draw(Drawing(temperature=config.temperature, seed=config.seed), numbers, prefixes)
        texts = greedy(decoder, memory, **shared, choose=draw)
    elif config.beam == 1:
        texts = greedy(decoder, memory, **shared)
    else:
        return beam(decoder, memory, **shared, width=config.beam)
    return [[text] for text in texts]
