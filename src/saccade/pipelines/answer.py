"""What every answer has: the input, a text, a score, other answers, where the model looked."""

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from saccade.errors import WrongUse

if TYPE_CHECKING:
    from PIL.Image import Image

    from saccade.look.record import Looks
    from saccade.pipelines.pipeline import Pipeline

Values = dict[str, object]
"""Plain values by name, as JSON has them."""


@dataclass(frozen=True)
class Answer:
    """What a pipeline says about one input; each task adds its own fields. `str(answer)` is the text.

    An answer can be pickled: its data goes along, the model does not.
    """

    source: str
    """The input: the text itself, or the name of the file."""
    text: str
    """What the model says: a translation, a class, a completed text."""
    score: float
    """How sure it is; each task says of what kind: a probability or a log-probability."""
    _: KW_ONLY
    others: list[Self] = field(default_factory=list, repr=False)
    """Further answers that were asked for, best first."""
    pipeline: "Pipeline[Any, Any] | None" = field(default=None, repr=False, compare=False)
    """What answered; None once the answer was pickled."""

    def __str__(self) -> str:
        return self.text

    @property
    def best(self) -> list[Self]:
        """All answers that were asked for, this one first."""
        return [self, *self.others]

    @cached_property
    def looks(self) -> "Looks":
        """Where the model looked, computed when it is first asked for."""
        if self.pipeline is None:
            raise WrongUse("this answer came without its model: ask the model again, or take .looks before pickling")
        return self.pipeline.look(self)

    @property
    def image(self) -> "Image | None":
        """The picture that was looked at, if the input has one; `--look` draws into it."""
        return None

    def record(self) -> Values:
        """The answer as plain values, for `--format json`."""
        record: Values = {"source": self.source, "text": self.text, "score": round(self.score, 5)}
        if self.others:
            record["best"] = [{"text": one.text, "score": round(one.score, 5)} for one in self.best]
        return record

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"pipeline": None}
