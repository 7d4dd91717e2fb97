"""Where the norm stands in a residual connection: before the sub-layer or after the sum. Which norm is passed in."""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from saccade.nn.dropout import Dropout

Norm = Callable[[int], nn.Module]
"""A width -> a norm of vectors that wide."""

KINDS: dict[str, type[nn.Module]] = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}
"""rms leaves the mean alone and has no bias (Zhang & Sennrich 2019)."""


def norms(kind: str, epsilon: float) -> Norm:
    """How norms of this kind are made."""
    return partial(KINDS[kind], eps=epsilon)


class PostNorm(nn.Module):
    """norm(x + dropout(f(x))): as in the paper (Vaswani et al. 2017, 3.1 and 5.4). Deep stacks need warm-up."""

    def __init__(self, width: int, dropout: float, norm: Norm = nn.LayerNorm) -> None:
        super().__init__()
        self.norm = norm(width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        result: Tensor = self.norm(self.dropout.add(x, sublayer(x)))
        return result


class PreNorm(PostNorm):
    """x + dropout(f(norm(x))): an unbroken path from input to output (GPT-2; Xiong et al. 2020)."""

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        result: Tensor = self.dropout.add(x, sublayer(self.norm(x)))
        return result


RESIDUALS = {"pre": PreNorm, "post": PostNorm}
