"""Several linear layers of one input as one matrix: one large product is faster than several."""

from collections.abc import Sequence

from torch import nn


class Stacked(nn.Linear):
    """Their outputs stand side by side, `sizes` wide. The product is one; what is learnt is several matrices."""

    def __init__(self, width: int, sizes: Sequence[int], *, bias: bool = True) -> None:
        super().__init__(width, sum(sizes), bias=bias)
        self.sizes = tuple(sizes)
