"""A picture through convolutions to a grid of vectors: a small ResNet, or the tokens of a compact Transformer."""

from typing import Literal

from pydantic import Field, model_validator

from saccade.arch.block import Activation
from saccade.arch.weights import Weight, Weights, joined, linear, table, within
from saccade.config import Record
from saccade.errors import UserError

Pair = tuple[int, int]
NARROWED = 8
"""Queries and keys of the attention module are so many times narrower than its values (Zhang et al. 2018)."""


def insist_on_size(given: tuple[int, int, int], known: tuple[int, int, int]) -> None:
    """Refuse a picture that is larger than the largest one a model knows, or has other colours; height, width and
    channels."""
    if given[2] != known[2] or given[0] > known[0] or given[1] > known[1]:
        raise UserError(
            f"a picture of {given[0]} x {given[1]} pixels with {given[2]} channels was given to a model that reads "
            f"{known[0]} x {known[1]} with {known[2]}"
        )


class ConvolutionStage(Record):
    """A convolution that may shrink the grid, then others that keep it."""

    width: int = Field(64, ge=1, le=65536)
    """Channels."""
    kernel: int = Field(3, ge=1, le=31)
    """Side of its windows, odd."""
    stride: Pair = (1, 1)
    """Steps of the first convolution, down and across: 2 halves the grid."""
    pool: Pair = (1, 1)
    """Fields, down and across, of which the largest value stays after the first convolution."""
    more: int = Field(0, ge=0, le=100)
    """Further convolutions."""
    residual: int = Field(0, ge=0, le=100)
    """Pairs of convolutions whose result is added to what enters them (He et al. 2016)."""

    @model_validator(mode="after")
    def _windows_have_a_middle(self) -> "ConvolutionStage":
        if self.kernel % 2 == 0:
            raise ValueError(f"a kernel is odd, so that its window has a middle, not {self.kernel}")
        if min(*self.stride, *self.pool) < 1 or max(*self.stride, *self.pool) > 64:
            raise ValueError(f"stride and pool are between 1 and 64, not {self.stride} and {self.pool}")
        return self

    @property
    def shrinks(self) -> Pair:
        """How many times smaller the grid becomes, down and across."""
        return self.stride[0] * self.pool[0], self.stride[1] * self.pool[1]

    @property
    def narrow(self) -> int:
        """Width of the attention module's queries and keys."""
        return max(1, self.width // NARROWED)


class ConvolutionsFrontEnd(Record):
    """A picture through convolutional stages. Each field of the last grid is a vector."""

    kind: Literal["convolutions"] = "convolutions"
    height: int = Field(224, ge=1, le=65536)
    """Pixels from top to bottom, at most."""
    width: int = Field(224, ge=1, le=65536)
    """Pixels from left to right, at most."""
    channels: int = Field(3, ge=1, le=8192)
    """Numbers of a pixel: 3 for colours, 1 for grey; more where a pixel is a field of another network's grid."""
    stages: tuple[ConvolutionStage, ...] = Field(min_length=1, max_length=100)
    """One after the other."""
    norm: Literal["batch", "layer", "none"] = "batch"
    """After every convolution. batch: by the mean and variance of each channel in training; layer: of each field's
    channels; none: a bias."""
    activation: Activation = "relu"
    """After every norm."""
    attention: tuple[int, ...] = ()
    """Stages, counted from 1, at whose end every field looks at all others: queries, keys and values by 1 x 1
    convolutions, and the result, times a gain that begins at 0, is added (Zhang et al. 2018)."""
    positions: bool = True
    """Every place of the last grid has a learned vector, which is added."""
    class_token: bool = False
    """A learned vector before the grid that stands for the whole picture."""

    @model_validator(mode="after")
    def _parts_fit(self) -> "ConvolutionsFrontEnd":
        if self.class_token and not self.positions:
            raise ValueError("a class token needs positions")
        if wrong := [number for number in self.attention if not 1 <= number <= len(self.stages)]:
            raise ValueError(f"attention after stage {wrong[0]}, but there are {len(self.stages)} stages")
        return self

    @property
    def cell(self) -> Pair:
        """Pixels of a field of the last grid, down and across."""
        down, across = 1, 1
        for stage in self.stages:
            down, across = down * stage.shrinks[0], across * stage.shrinks[1]
        return down, across

    @property
    def patch(self) -> int:
        """The same from top to bottom."""
        return self.cell[0]

    @property
    def grid(self) -> Pair:
        """Fields from top to bottom and from left to right, at most."""
        return self.grids_of(self.height, self.width)[-1]

    def grids_of(self, height: int, width: int) -> list[Pair]:
        """The grid after each stage; what is left over at an edge is a field too."""
        found = []
        for stage in self.stages:
            for down, across in (stage.stride, stage.pool):
                height, width = -(-height // down), -(-width // across)
            found.append((height, width))
        return found

    def grid_of(self, height: int, width: int, channels: int) -> Pair:
        """The last grid of a picture of so many pixels; one that does not fit is refused."""
        insist_on_size((height, width, channels), (self.height, self.width, self.channels))
        return self.grids_of(height, width)[-1]

    @property
    def extra(self) -> int:
        """Positions before the grid."""
        return int(self.class_token)

    @property
    def length(self) -> int:
        """Positions that enter the first layer, at most."""
        return self.extra + self.grid[0] * self.grid[1]

    @property
    def last_width(self) -> int:
        """Channels of the last stage."""
        return self.stages[-1].width

    def weights(self, width: int, vocabulary: int, per: str) -> Weights:
        """`width` is that of the vectors that enter the first layer; the last stage is brought to it."""
        inputs, found = self.channels, Weights()
        for number, stage in enumerate(self.stages):
            found |= within(f"embed.stages.{number}", self._stage(stage, inputs, _part(per, number)))
            if number + 1 in self.attention:
                found |= within(f"embed.stages.{number}.attention", _attention(stage, _part(per, number)))
            inputs = stage.width
        if self.last_width != width:
            found |= linear("embed.project", width, self.last_width, _input_of(per))
        if self.class_token:
            found |= {"embed.class_token": Weight((width,))}
        return found | (table("embed.positions.vectors", self.length, width) if self.positions else {})

    def counts(self, per: str, positions: int) -> dict[str, int]:
        """How often matrices are multiplied for so many positions of the memory `per`."""
        fields = positions - self.extra
        found = {per: positions, _input_of(per): fields}
        for number, stage in reversed(list(enumerate(self.stages))):
            found[_part(per, number)] = fields
            # The first convolution of a stage is computed before its fields are pooled.
            fields *= stage.pool[0] * stage.pool[1]
            found[f"{_part(per, number)} first"] = fields
            fields *= stage.stride[0] * stage.stride[1]
        return found

    def _stage(self, stage: ConvolutionStage, inputs: int, per: str) -> Weights:
        width = stage.width
        parts = [within("first", self._unit(width, inputs, stage.kernel, f"{per} first"))]
        same = self._unit(width, width, stage.kernel, per)
        parts += [within(f"more.{number}", same) for number in range(stage.more)]
        for number in range(stage.residual):
            parts += [within(f"residual.{number}.{part}", same) for part in ("one", "two")]
        return joined(parts)

    def _unit(self, outputs: int, inputs: int, kernel: int, per: str) -> Weights:
        """A convolution and its norm; its matrix has a row for each output: a window's fields, row by row."""
        found = linear("convolution", outputs, kernel * kernel * inputs, per, bias=self.norm == "none")
        if self.norm != "none":
            found |= {f"norm.{part}": Weight((outputs,)) for part in ("weight", "bias")}
        if self.norm == "batch":
            found |= {f"norm.{part}": Weight((outputs,), learnt=False) for part in ("mean", "variance")}
        return found


def _attention(stage: ConvolutionStage, per: str) -> Weights:
    # A bias of keys would add the same to all scores of a query.
    parts = [linear(part, stage.narrow, stage.width, per, bias=part == "query") for part in ("query", "key")]
    return joined([*parts, linear("value", stage.width, stage.width, per), {"gain": Weight((1,))}])


def stage_memory(memory: str, number: int) -> str:
    """What the attention module of a stage, counted from 0, looks at: the grid of that stage."""
    return f"{memory}_stage{number + 1}"


def _part(per: str, number: int) -> str:
    return f"{per} stage {number}"


def _input_of(per: str) -> str:
    return f"{per} input"
