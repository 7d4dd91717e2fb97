"""How a text is searched for, as recipes and requests say it, and one call for rows that are all known at once."""

from collections.abc import Sequence

from pydantic import Field

from saccade.config import Record
from saccade.decode.hypothesis import Hypothesis
from saccade.decode.row import Beam, Greedy, RowRequest, Sample, Strategy
from saccade.decode.sample import Drawing
from saccade.decode.session import Session
from saccade.runtime.contract import AnyArrayMemory, DecoderLike, S
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
    ctc: float = Field(0.0, ge=0, le=1)
    """Share of CTC's score beside the decoder's, where a model has both (Watanabe et al. 2017)."""

    def limit(self, source: int) -> int:
        """The longest text for a source of so many tokens: its own length decides, never its batch's."""
        return int(self.factor * source) + self.extra

    def strategy(self, number: int) -> Strategy:
        """How the text at this place of the whole input is found."""
        if self.temperature is not None:
            return Sample(Drawing(temperature=self.temperature, seed=self.seed), number, self.alpha)
        return Greedy(self.alpha) if self.beam == 1 else Beam(self.beam, self.alpha)


def search(
    decoder: DecoderLike[S],
    requests: Sequence[RowRequest],
    memory: AnyArrayMemory | None = None,
    *,
    marks: Marks,
    context: int | None = None,
) -> list[list[Hypothesis]]:
    """The texts found for every row, best first, all rows written side by side; each has its place in the memory."""
    session = Session(decoder, marks, context=context)
    texts = session.add_all(requests, memory)
    while session:
        session.step()
    return [text.best for text in texts]
