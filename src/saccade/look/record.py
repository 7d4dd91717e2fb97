"""What was looked at while a text was written, as plain numbers and labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from saccade.errors import WrongUse

END_LABEL = "(end)"


@dataclass(frozen=True)
class Alignment:
    """One picture's worth: how much each target word looked at each source word."""

    source: list[str]
    target: list[str]
    weights_TS: np.ndarray
    """Each row sums to 1."""
    title: str
    """Which layer and heads these are."""


@dataclass(frozen=True)
class TextLooks:
    """All attention of one source and one target text: every layer, every head, nothing averaged."""

    source: list[str]
    """Source pieces; one that begins a word begins with a space."""
    target: list[str]
    cross: np.ndarray
    """[L, N, T, S]: the decoder's looks at the source."""
    encoder: np.ndarray
    """[L, N, S, S]: the source's looks at itself."""
    decoder: np.ndarray
    """[L, N, T, T]: the target's looks at its own past."""
    layer: int
    """The layer that is drawn unless another is asked for, counted from 1."""
    drawn: Literal["cross", "decoder", "encoder"] = "cross"
    """Which of them a picture shows: a text's looks at itself where there is only one text."""

    @classmethod
    def at_itself(cls, pieces: list[str], looks: np.ndarray) -> "TextLooks":
        """Of a text that an encoder only reads: [L, N, T, T]."""
        none = np.zeros((0, 1, 1, 1))
        return cls(pieces, pieces, none, looks, none, layer=1, drawn="encoder")

    def alignment(self, layer: int | None = None, head: int | None = None) -> Alignment:
        """Attention between words: one layer, one head or the mean over its heads, both counted from 1.

        A target word's look is the mean of its pieces'; a source word collects the sum over its pieces.
        """
        weights: np.ndarray = getattr(self, self.drawn)
        layers, heads = weights.shape[:2]
        if layers == 0:
            raise WrongUse("this model has no attention: it hands over one vector, and there is nothing to draw")
        number = _within(self.layer if layer is None else layer, layers, "layer")
        one = None if head is None else _within(head, heads, "head")
        layer_NTS = weights[number - 1]
        weights_TS = layer_NTS.mean(axis=0) if one is None else layer_NTS[one - 1]
        source_groups, target_groups = group_words(self.source), group_words(self.target)
        columns = np.stack([weights_TS[:, group].sum(axis=1) for group in source_groups], axis=1)
        joined = np.stack([columns[group].mean(axis=0) for group in target_groups])
        which = "one head" if heads == 1 else f"mean of {heads} heads" if one is None else f"head {one} of {heads}"
        kind = "cross-attention" if self.drawn == "cross" else "self-attention"
        title = f"{kind}, layer {number} of {layers}, {which}"
        return Alignment(_labels(self.source, source_groups), _labels(self.target, target_groups), joined, title)

    def picture(self, path: str | Path, *, layer: int | None = None, head: int | None = None) -> Path:
        """Draw the alignment into a PNG or SVG file."""
        from saccade.look.picture import draw

        return draw(self.alignment(layer, head), Path(path))


def group_words(pieces: Sequence[str]) -> list[list[int]]:
    """Pieces -> words: a word begins at a space, and a mark of punctuation stands alone."""
    groups: list[list[int]] = []
    for number, piece in enumerate(pieces):
        begins = not groups or piece[:1].isspace() or piece == END_LABEL
        if begins or _is_mark(piece) or _is_mark(pieces[number - 1]):
            groups.append([number])
        else:
            groups[-1].append(number)
    return groups


def _is_mark(piece: str) -> bool:
    """Only punctuation; a part of a character (shown as U+FFFD) is none."""
    text = piece.strip()
    return bool(text) and not any(letter.isalnum() for letter in text) and "\ufffd" not in text


def _labels(pieces: Sequence[str], groups: list[list[int]]) -> list[str]:
    """Words as they can be drawn: what has no shape, such as a control character, is shown as U+FFFD."""
    words = ("".join(pieces[i] for i in group).strip() or "␣" for group in groups)
    return ["".join(letter if letter.isprintable() else "\ufffd" for letter in word) for word in words]


def _within(number: int, count: int, what: str) -> int:
    if not 1 <= number <= count:
        raise WrongUse(f"{what} {number} asked, but there are {count}, counted from 1")
    return number
