"""Which search, with which settings: one call for greedy, beam and sampling."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from saccade.config import Record
from saccade.decode.beam import beam
from saccade.decode.greedy import greedy
from saccade.decode.hypothesis import Hypothesis
from saccade.decode.running import Writer


class SearchConfig(Record):
    """How a decoder's text is found."""

    beam: int = Field(5, ge=1, le=1000)
    """Beginnings kept at every step; 1 is greedy."""
    alpha: float = Field(0.6, ge=0, le=10)
    """Length penalty: 0 ranks by probability alone, more favours longer texts."""
    factor: float = Field(2.0, ge=0, le=100)
    """At most factor x source tokens + extra tokens are written."""
    extra: int = Field(20, ge=1, le=100_000)
    """See factor."""
    temperature: float | None = Field(None, gt=0, le=1000)
    """Draw at random instead: below 1 bolder towards the likely, above 1 more varied."""
    seed: int = Field(0, ge=0, lt=2**40)
    """Same seed, same draws."""

    def limit(self, source: int) -> int:
        """The longest text for a source of so many tokens: its own length decides, never its batch's."""
        return int(self.factor * source) + self.extra


def search(
    decoder: Writer,
    memory: Any,
    config: SearchConfig,
    *,
    prefixes: Sequence[Sequence[int]],
    limits: Sequence[int],
    numbers: list[int],
) -> list[list[Hypothesis]]:
    """The texts found for every row of the memory, best first; `numbers` are the rows' places in the whole input."""
    if config.temperature is not None:
        from saccade.decode.sample import Draw, Drawing  # the only search that needs PyTorch

        draw = Draw(Drawing(temperature=config.temperature, seed=config.seed), numbers, prefixes)
        texts = greedy(decoder, memory, prefixes=prefixes, limits=limits, alpha=config.alpha, choose=draw)
    elif config.beam == 1:
        texts = greedy(decoder, memory, prefixes=prefixes, limits=limits, alpha=config.alpha)
    else:
        return beam(decoder, memory, prefixes=prefixes, limits=limits, width=config.beam, alpha=config.alpha)
    return [[text] for text in texts]
