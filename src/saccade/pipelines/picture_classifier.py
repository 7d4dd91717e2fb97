"""A trained classifier of pictures: a picture in, its class out, and which parts of the picture it came from."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from saccade.arch.convolutions import ConvolutionsFrontEnd, stage_memory
from saccade.arch.encoder_decoder import StackConfig
from saccade.arch.front_end import PictureFrontEnd
from saccade.arch.grid import GridConfig
from saccade.arch.heads import ClassHead
from saccade.axes import Axis, Grid, Pieces, Positions
from saccade.decode.filters import softmax
from saccade.folder import ModelFolder, TaskSettings
from saccade.look.record import LayerLooks, Looks
from saccade.look.rollout import roll_out
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.forced import Forced
from saccade.pipelines.opening import PictureModel, open_pictures
from saccade.pipelines.pipeline import Pipeline, Report, Request, unreported
from saccade.runtime.contract import Floats, How
from saccade.runtime.open import Choice
from saccade.sites import SOURCE
from saccade.sources.picture import PictureItem, PictureSource

if TYPE_CHECKING:
    from PIL.Image import Image

BATCH_PIXELS = 64 * 32 * 32
PICTURE = "picture"
"""The name of what is looked at, in looks."""


class PictureClassifierSettings(TaskSettings):
    """What a model folder says about its classes."""

    classes: list[str]
    """Their names."""
    pooling: Literal["dense", "first", "mean"]
    """What stands for the whole picture."""
    mirror: bool = False
    """Each picture is also seen in a mirror, and what is said of both is averaged."""


@dataclass(frozen=True)
class PictureClass(Answer):
    """What a picture was taken for: the class and its probability."""

    item: PictureItem = field(repr=False, compare=False)
    """The picture that was read."""

    @property
    def image(self) -> "Image":
        return self.item.image

    def record(self) -> Values:
        record: Values = {"source": self.source, "class": self.text, "probability": round(self.score, 6)}
        if self.others:
            record["best"] = [{"class": one.text, "probability": round(one.score, 6)} for one in self.best]
        return record


class PictureClassifier(Pipeline[PictureItem, PictureClass]):
    """Says what is in a picture: `see("photo.jpg").text`.

    `saccade.train("pictures", "photos", out="my-model")` makes one of a folder with a folder for each class.
    """

    def __init__(self, model: PictureModel, classes: Sequence[str], *, mirror: bool = False) -> None:
        self.model, self.classes, self.mirror = model, list(classes), mirror

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "PictureClassifier":
        """The model of a folder."""
        settings = folder.settings(PictureClassifierSettings)
        head = ClassHead(outputs=max(1, len(settings.classes)), pooling=settings.pooling)
        return cls(open_pictures(folder, head, how), settings.classes, mirror=settings.mirror)

    @cached_property
    def front(self) -> PictureFrontEnd:
        """How the picture becomes vectors."""
        encoder = self.model.config.encoder
        assert isinstance(encoder, StackConfig | GridConfig)
        assert isinstance(encoder.front, PictureFrontEnd)
        return encoder.front

    @cached_property
    def source(self) -> PictureSource:
        return picture_source(self.front)

    @property
    def choice(self) -> Choice:
        return self.model.choice

    def answer_items(
        self, items: Sequence[PictureItem], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[PictureClass]:
        outputs = self.outputs(np.stack([item.pixels_HWC for item in items]), report)
        return [self._class(item, row, one.best) for item, row, one in zip(items, outputs, requests, strict=True)]

    def outputs(self, pixels_NHWC: np.ndarray, report: Report = unreported) -> Floats:
        """What the output layer says of each picture: [N, classes]."""
        found: Floats = np.zeros((len(pixels_NHWC), len(self.classes)), dtype=np.float32)
        step = max(1, BATCH_PIXELS // int(np.prod(pixels_NHWC.shape[1:3])))
        for first in range(0, len(pixels_NHWC), step):
            part = slice(first, first + step)
            values = pixels_NHWC[part].astype(np.float32) / np.float32(255)
            found[part] = self.model.outputs(values)
            if self.mirror:
                found[part] = (found[part] + self.model.outputs(np.ascontiguousarray(values[:, :, ::-1]))) / 2
            report(min(first + step, len(pixels_NHWC)), len(pixels_NHWC))
        return found

    def _class(self, item: PictureItem, output: Floats, best: int) -> PictureClass:
        chances = softmax(output[None])[0]
        top = np.argsort(-chances, kind="stable")[:best].tolist()
        first, *others = (
            PictureClass(item.name, self.classes[place], float(chances[place]), item, pipeline=self) for place in top
        )
        first.others.extend(others)
        return first

    def forced(self, answer: PictureClass, inputs: Sequence[Any] | None = None) -> Forced:
        items = [answer.item] if inputs is None else [self.source.read(one) for one in inputs]
        chances_NC = softmax(self.outputs(np.stack([item.pixels_HWC for item in items])))
        chosen_N = chances_NC[:, self.classes.index(answer.text)]
        return Forced(Pieces.letters([answer.text]), np.log(np.maximum(chosen_N, 1e-30))[:, None])

    def look(self, answer: PictureClass) -> Looks:
        """Which parts of the picture the answer came from, rolled out through all layers; then every layer's looks."""
        front = self.front
        heard = self.model.look(self.source.collate([answer.item]).values)
        grid = Grid(height=front.grid[0], width=front.grid[1])
        axes: dict[str, Axis] = {SOURCE: Positions(count=front.length) if front.extra else grid}
        if isinstance(front, ConvolutionsFrontEnd):
            grids = enumerate(front.grids_of(front.height, front.width))
            axes |= {stage_memory(SOURCE, number): Grid(height=h, width=w) for number, (h, w) in grids}
        looks = Looks.of(heard, axes)
        summary = self._summary(answer.text, looks, grid)
        return replace(looks, layers=(*summary, *looks.layers))

    def _summary(self, name: str, looks: Looks, grid: Grid) -> list[LayerLooks]:
        """One look of the whole answer at the picture; none where nothing attends."""
        rows, layers = Pieces.letters([name]), [one for one in looks.layers if one.memory == SOURCE]
        if layers:
            sources_SS = roll_out([one.weights_NTS for one in layers])
            extra = self.front.extra
            whole_S = sources_SS[0] if self._reads_first else sources_SS[extra:].mean(axis=0)
            weights_S, columns = whole_S[extra:] / whole_S[extra:].sum(), grid
            title = f"where the answer comes from: attention rolled out over {len(layers)} layers"
        elif looks.layers:
            last = looks.layers[-1]
            assert isinstance(last.columns, Grid)
            weights_S, columns = last.weights_NTS.mean(axis=(0, 1)), last.columns
            title = "where the fields of the picture looked: the attention module"
        else:
            return []
        return [LayerLooks("rollout", "cross", PICTURE, weights_S[None, None], rows, columns, title=title)]

    @property
    def _reads_first(self) -> bool:
        head = self.model.config.head
        return isinstance(head, ClassHead) and head.pooling != "mean"


def picture_source(front: PictureFrontEnd) -> PictureSource:
    """What a front end reads: every picture is brought to its size."""
    return PictureSource(size_HW=(front.height, front.width), channels=1 if front.channels == 1 else 3)
