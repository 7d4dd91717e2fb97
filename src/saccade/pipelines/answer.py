"""What every answer has: the input, a text, a score, other answers, where the model looked."""

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Self

from saccade.errors import UserError, WrongUse

if TYPE_CHECKING:
    from PIL.Image import Image

    from saccade.look.record import Looks
    from saccade.pipelines.pipeline import Pipeline

Values = dict[str, object]
"""Plain values by name, as JSON has them."""
_SHOWN = 60
"""Characters of a text in `repr`."""


@dataclass(frozen=True)
class Answer:
    """What a pipeline says about one input; each task adds its own fields. `str(answer)` is the text; a notebook shows
    the text and where the model looked.

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

    def __init_subclass__(cls) -> None:
        # A dataclass writes a repr of all fields, token ids included, unless its class has one already.
        cls.__repr__ = Answer.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_short(self.text)}, score={self.score:.4g}, source={_short(self.source)})"

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str | None:
        """The text and the picture of its looks, in a notebook; None where nothing can be drawn."""
        looks = self._shown_looks()
        picture = looks._repr_html_() if looks is not None else None
        return picture and f"<p>{escape(self.text)}</p>{picture}"

    def _repr_png_(self) -> bytes | None:
        looks = self._shown_looks()
        return looks._repr_png_() if looks is not None else None

    def _shown_looks(self) -> "Looks | None":
        try:
            return self.looks
        except UserError:
            return None

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
    def warnings(self) -> list[str]:
        """What its reader should know about it, a line each."""
        return []

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


def _short(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN else repr(text[:_SHOWN]) + "…"
