"""A row of a session: what is asked of it, by which strategy its tokens are chosen, and the text it becomes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from saccade.decode.ctc import CtcColumns, Prefixes
from saccade.decode.hypothesis import Hypothesis, length_penalty
from saccade.decode.sample import Drawing, Draws


@dataclass(frozen=True)
class Greedy:
    """The likeliest token, again and again."""

    alpha: float = 0.0
    """Length penalty of the score."""


@dataclass(frozen=True)
class Sample:
    """A token drawn from softmax(logits / temperature), after the filters."""

    drawing: Drawing
    number: int = 0
    """The text's place in the whole input: it and the seed, not the session, decide the draws."""
    alpha: float = 0.0


@dataclass(frozen=True)
class Beam:
    """The K likeliest beginnings of the text."""

    width: int
    alpha: float = 0.6


Strategy = Greedy | Sample | Beam


@dataclass(frozen=True)
class RowRequest:
    """What a row reads before it writes, how far it may write, and how its tokens are chosen."""

    prompt: Sequence[int]
    """What the decoder reads first, and is no part of the text: a start mark, or the prompt of a language model."""
    limit: int
    """The most tokens that are written, the end mark included."""
    strategy: Strategy = Greedy()
    prefix: Sequence[int] = ()
    """What the text begins with: it is read too."""
    columns: CtcColumns | None = None
    """What CTC says of the input, for beams: a joint search."""

    def __post_init__(self) -> None:
        if not self.prompt and not self.prefix:
            raise ValueError("a row reads at least one token before it writes")
        if self.columns is not None and (self.prefix or not isinstance(self.strategy, Beam)):
            raise ValueError("a joint search is a beam's, and begins with nothing written")


@dataclass(eq=False, slots=True)
class Text:
    """What a row has written so far: the handle by which a session's caller knows the row."""

    request: RowRequest
    tokens: list[int]
    """Prefix included, the end mark left out. A beam's are known when it is over."""
    logprob: float = 0.0
    """Natural log of the probability of all that was written after the prefix, the end mark included."""
    written: int = 0
    """Tokens after the prefix, the end mark included."""
    finished: bool = False
    """The model ended it; False when the limit or its caller did."""
    over: bool = False
    """Nothing more is written."""
    found: list[Hypothesis] = field(default_factory=list)
    """A beam's texts that may be returned."""
    draws: Draws | None = None
    """The random numbers of a text that is sampled."""
    held: int = 0
    """Tokens that the decoder remembers of it, with the one it writes next."""
    prefixes: Prefixes | None = None
    """What CTC says of its beams."""

    @classmethod
    def of(cls, request: RowRequest) -> "Text":
        text = cls(request, list(request.prefix))
        if isinstance(request.strategy, Sample):
            drawing, number = request.strategy.drawing, request.strategy.number
            text.draws = Draws(drawing.seed, number, {*request.prompt, *request.prefix})
        if request.columns is not None:
            text.prefixes = request.columns.begin()
        return text

    @property
    def best(self) -> list[Hypothesis]:
        """What was found, best first: one text, or as many as the beam is wide."""
        if isinstance(self.request.strategy, Beam):
            return self.found
        score = self.logprob / length_penalty(max(1, self.written), self.request.strategy.alpha)
        return [Hypothesis(self.tokens, self.logprob, score, self.finished)]
