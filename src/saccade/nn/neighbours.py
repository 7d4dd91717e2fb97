"""The convolution module of a Conformer block (Gulati et al. 2020, 2.2): what stands near, beside attention to all."""

import torch.nn.functional as F
from torch import Tensor, nn


class ConvolutionModule(nn.Module):
    """W (silu(norm(depthwise(gate · value)))). The paper's batch norm is a layer norm here: so a recording is the same
    alone and in a batch."""

    def __init__(self, width: int, kernel: int, epsilon: float) -> None:
        super().__init__()
        self.widen = nn.Linear(width, 2 * width)
        self.taps = nn.Parameter(Tensor(width, kernel))
        self.bias = nn.Parameter(Tensor(width))
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.out = nn.Linear(width, width)
        nn.init.uniform_(self.taps, -(kernel**-0.5), kernel**-0.5)
        nn.init.zeros_(self.bias)

    def forward(self, x_MSD: Tensor, real_MS: Tensor | None = None) -> Tensor:
        """`real_MS` is True where there is something: what is padded is zero to its neighbours."""
        value, gate = self.widen(x_MSD).chunk(2, dim=-1)
        y_MSD = value * gate.sigmoid()
        if real_MS is not None:
            y_MSD = y_MSD * real_MS[..., None]
        width, kernel = self.taps.shape
        y_MDS = F.conv1d(y_MSD.transpose(1, 2), self.taps[:, None], self.bias, padding=kernel // 2, groups=width)
        result: Tensor = self.out(F.silu(self.norm(y_MDS.transpose(1, 2))))
        return result
