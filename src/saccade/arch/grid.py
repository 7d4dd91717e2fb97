"""An encoder that is only a front end of convolutions: the grid of a small ResNet, to be classified or looked at."""

from typing import Literal

from pydantic import Field

from saccade.arch.convolutions import ConvolutionsFrontEnd
from saccade.arch.weights import Weights
from saccade.config import Record
from saccade.sites import SOURCE


class GridConfig(Record):
    """The fields of the last convolutional stage are the memory."""

    kind: Literal["grid"] = "grid"
    front: ConvolutionsFrontEnd
    """The stages; kind = "convolutions"."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the last grid dropped in training."""

    @property
    def front_end(self) -> ConvolutionsFrontEnd:
        return self.front

    @property
    def width(self) -> int:
        return self.front.last_width

    @property
    def embed(self) -> int:
        return self.width

    def weights(self, per: str = SOURCE) -> Weights:
        """Without the front end there is nothing."""
        return {}
