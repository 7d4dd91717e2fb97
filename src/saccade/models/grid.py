"""The encoder whose memory is the last grid of a small ResNet."""

from torch import Tensor

from saccade.arch.encoder_decoder import reader_weights
from saccade.arch.grid import GridConfig
from saccade.arch.weights import flops
from saccade.models.contract import Encoder, Memory
from saccade.nn.convolutions import PictureConvolutions
from saccade.sites import SOURCE


class GridEncoder(Encoder):
    """The convolutions of its front end, and nothing on them."""

    def __init__(self, config: GridConfig, embed: PictureConvolutions) -> None:
        super().__init__()
        self.config, self.width, self.embed = config, config.width, embed

    def forward(self, source_MS: Tensor, mask_MS: Tensor | None = None) -> Memory:
        vectors = self.embed.read(source_MS, mask_MS)
        return Memory(vectors.x_MSD, vectors.mask_MS, grid=vectors.grid)

    def flops(self, source: int) -> float:
        return flops(reader_weights(self.config, 0), self.config.front_end.counts(SOURCE, source))
