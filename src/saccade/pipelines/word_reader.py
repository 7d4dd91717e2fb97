"""A trained reader: a picture of a word, a line or a page in, its text out, letter by letter, and where each letter was
read (show, attend and read)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from saccade.arch.front_end import PictureFrontEnd
from saccade.axes import Axis, Grid, Pieces
from saccade.decode.filters import softmax
from saccade.decode.hypothesis import Hypothesis, write_each
from saccade.decode.row import RowRequest
from saccade.decode.search import search
from saccade.errors import UserError
from saccade.folder import ModelFolder, TaskSettings
from saccade.look.record import Looks
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.forced import Forced, forced_text, in_batches, only_part
from saccade.pipelines.opening import SequenceModel, open_sequence
from saccade.pipelines.page import Cut, WordBox, cut_words
from saccade.pipelines.pipeline import Pipeline, Report, Request
from saccade.runtime.contract import How
from saccade.runtime.open import Choice
from saccade.sites import SOURCE, TARGET
from saccade.sources.picture import PictureItem, PictureSource
from saccade.tokens.vocabulary import Vocabulary, read_vocabulary

if TYPE_CHECKING:
    from PIL.Image import Image

LONGEST = 32
"""Letters of a word that are written at most."""
WORDS_AT_ONCE = 64


class WordReaderSettings(TaskSettings):
    """What a model folder says about reading."""

    layer: int = 1
    """Cross-attention layer that is drawn by default."""


@dataclass(frozen=True)
class ReadWord:
    """A word that was read."""

    text: str
    """What is written there."""
    box: WordBox
    """Where it stands in the picture."""
    confidence: float
    """Probability of all its letters together, and of its end."""
    confidences: list[float] = field(repr=False)
    """Probability of each letter, given those before it."""
    ids: list[int] = field(repr=False)
    """The letters as ids."""
    pixels_HW: np.ndarray = field(repr=False, compare=False)
    """As the model saw it."""

    def record(self) -> Values:
        """As plain values."""
        box = [self.box.left, self.box.top, self.box.right, self.box.bottom]
        letters = [
            {"text": one, "confidence": round(p, 4)} for one, p in zip(self.text, self.confidences, strict=False)
        ]
        return {"text": self.text, "box": box, "confidence": round(self.confidence, 4), "characters": letters}


@dataclass(frozen=True)
class PictureText(Answer):
    """The text of a picture, line by line; its score is the confidence of its least certain word."""

    lines: list[list[ReadWord]] = field(repr=False)
    """The words of each line."""
    crop: "Image | None" = field(default=None, repr=False, compare=False)
    """The picture itself, where it holds one word."""

    @property
    def words(self) -> list[ReadWord]:
        """All words in reading order."""
        return [word for line in self.lines for word in line]

    @property
    def image(self) -> "Image | None":
        return self.crop

    def record(self) -> Values:
        lines = [
            {"text": " ".join(word.text for word in line), "words": [word.record() for word in line]}
            for line in self.lines
        ]
        return {"source": self.source, "text": self.text, "confidence": round(self.score, 4), "lines": lines}

    @property
    def hocr(self) -> str:
        """Words with their boxes, as hOCR has them: HTML that other programs read."""
        lines = []
        for line in self.lines:
            spans = " ".join(
                f'<span class="ocrx_word" title="bbox {word.box.left} {word.box.top} {word.box.right} '
                f'{word.box.bottom}; x_wconf {round(100 * word.confidence)}">{escape(word.text)}</span>'
                for word in line
            )
            lines.append(f'<span class="ocr_line">{spans}</span>')
        return (
            f'<div class="ocr_page" title="image {escape(self.source, quote=True)}">\n' + "\n".join(lines) + "\n</div>"
        )


class WordReader(Pipeline[PictureItem, PictureText]):
    """Reads what is written in a picture: `read("word.png").text`. `reader.cut = "page"` says what pictures hold, where
    that should not be found out: a word, a line or a page."""

    options = frozenset()
    at_once: ClassVar[int] = 16
    cut: Cut = "auto"
    """What a picture holds."""

    def __init__(self, model: SequenceModel, vocabulary: Vocabulary, *, layer: int = 1) -> None:
        self.model, self.vocabulary, self.layer = model, vocabulary, layer

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "WordReader":
        """The model of a folder."""
        settings = folder.settings(WordReaderSettings)
        vocabulary = read_vocabulary(folder.tokenizer, folder.path / "tokenizer.json", marks=folder.marks)
        return cls(open_sequence(folder, vocabulary, how), vocabulary, layer=settings.layer)

    @cached_property
    def source(self) -> PictureSource:
        return PictureSource(channels=1)

    @cached_property
    def front(self) -> PictureFrontEnd:
        """How a word becomes vectors."""
        front = next(iter(self.model.config.readers.values())).front_end
        assert isinstance(front, PictureFrontEnd)
        return front

    @property
    def choice(self) -> Choice:
        return self.model.choice

    def answer_items(
        self, items: Sequence[PictureItem], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[PictureText]:
        pages = [item.pixels_HWC[..., 0] for item in items]
        boxes = [cut_words(page, self.cut) for page in pages]
        parts = [
            (page[box.top : box.bottom, box.left : box.right], box)
            for page, lines in zip(pages, boxes, strict=True)
            for line in lines
            for box in line
        ]
        words = iter(self.read_words([crop for crop, _ in parts], [box for _, box in parts]))
        readings = []
        for item, lines in zip(items, boxes, strict=True):
            found = [[next(words) for _ in line] for line in lines]
            text = "\n".join(" ".join(word.text for word in line) for line in found)
            score = min((word.confidence for line in found for word in line), default=1.0)
            alone = sum(map(len, found)) == 1
            readings.append(PictureText(item.name, text, score, found, item.seen if alone else None, pipeline=self))
        report(len(items), len(items))
        return readings

    def read_words(self, crops: Sequence[np.ndarray], boxes: Sequence[WordBox] | None = None) -> list[ReadWord]:
        """The word in each crop, grey of any size."""
        boxes = boxes or [WordBox(0, 0, crop.shape[1], crop.shape[0]) for crop in crops]
        found: list[ReadWord] = []
        for first in range(0, len(crops), WORDS_AT_ONCE):
            part = slice(first, first + WORDS_AT_ONCE)
            pixels = [self.fitted(crop) for crop in crops[part]]
            memory = self.model.read(np.stack(pixels)[..., None].astype(np.float32) / np.float32(255))
            marks = self.vocabulary.marks
            rows = [RowRequest([marks.start], LONGEST)] * len(pixels)
            texts = [best[0].tokens for best in search(self.model.decoder, rows, memory, marks=marks)]
            logits_BTV, _ = write_each(self.model.decoder, memory, [[marks.start, *ids] for ids in texts])
            for ids, logits_TV, box, one in zip(texts, logits_BTV, boxes[part], pixels, strict=True):
                chances_TV = softmax(logits_TV[: len(ids) + 1])
                each = [float(chances_TV[place, token]) for place, token in enumerate([*ids, marks.end])]
                text = self.vocabulary.decode(ids)
                found.append(ReadWord(text, box, float(np.prod(each)), each[:-1], ids, one))
        return found

    def forced(self, answer: PictureText, inputs: Sequence[Any] | None = None) -> Forced:
        """Letters; inputs are crops of one word."""
        if not answer.words:
            raise UserError(f"{answer.source}: no text was found, and there is nothing to explain")
        if inputs is None:
            return Forced.join([self._forced(word, [word.pixels_HW]) for word in answer.words])
        only_part(len(answer.words), "word")
        crops = [self.fitted(self.source.read(one).pixels_HWC[..., 0]) for one in inputs]
        return in_batches(len(crops), lambda part: self._forced(answer.words[0], crops[part]))

    def _forced(self, word: ReadWord, pixels: Sequence[np.ndarray]) -> Forced:
        memory = self.model.read(np.stack(pixels)[..., None].astype(np.float32) / np.float32(255))
        hypothesis = Hypothesis(word.ids, 0.0, 0.0, finished=True)
        found = forced_text(self.model.decoder, memory, len(pixels), hypothesis, self.vocabulary)
        return Forced(Pieces.letters(found.pieces.labels), found.logprobs_IP)

    def fitted(self, crop_HW: np.ndarray) -> np.ndarray:
        """A crop of any size, stretched to what the model reads."""
        from PIL import Image

        size = (self.front.width, self.front.height)
        image = Image.fromarray(np.ascontiguousarray(crop_HW)).resize(size, Image.Resampling.BILINEAR)
        return np.asarray(image, dtype=np.uint8)

    def look(self, answer: PictureText) -> Looks:
        """Where each letter looked, word by word."""
        if not answer.words:
            raise UserError(f"{answer.source}: no text was found, so there is nothing to draw")
        return Looks.join([self.look_at(word) for word in answer.words])

    def look_at(self, word: ReadWord) -> Looks:
        """Where each letter of a word looked."""
        read = [self.vocabulary.marks.start, *word.ids]
        heard = self.model.look(word.pixels_HW[None, ..., None].astype(np.float32) / np.float32(255), np.array([read]))
        grid = Grid(height=self.front.grid[0], width=self.front.grid[1])
        axes: dict[str, Axis] = {SOURCE: grid, TARGET: Pieces.of(self.vocabulary, read)}
        written = Pieces.letters([*word.text, "(end)"])
        return Looks.of(heard, axes, written=written, layer=self.layer)
