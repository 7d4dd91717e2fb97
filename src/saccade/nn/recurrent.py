"""Recurrent layers: a state that is carried from word to word.

The gates stand in PyTorch's order, so weights can be exchanged with `nn.GRU` and `nn.LSTM`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from saccade.arch.recurrent import CARRIES, GATES, CellName

Carried = tuple[Tensor, ...]
"""What is carried on, [B, H] each; the first is also what others see."""


class Cell(nn.Module):
    """One step: the old state and the input's share of the gates make the new state."""

    gates: int
    """Gates, each as wide as the state."""
    carries: int
    """Vectors that are carried on."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.input = nn.Linear(inputs, self.gates * width)
        self.state = nn.Linear(width, self.gates * width)
        for weight in self.parameters():
            nn.init.uniform_(weight, -(width**-0.5), width**-0.5)

    def forward(self, input_BG: Tensor, carried: Carried) -> Carried:
        """`input_BG` is `self.input` of the input: it can be had for all steps at once."""
        raise NotImplementedError


class GruCell(Cell):
    """Gated recurrent unit (Cho et al. 2014), the reset gate after the product, as cuDNN and PyTorch have it."""

    gates, carries = GATES["gru"], CARRIES["gru"]

    def forward(self, input_BG: Tensor, carried: Carried) -> Carried:
        (h_BH,) = carried
        state_BG = self.state(h_BH).to(h_BH.dtype)
        both = 2 * self.width
        reset_BH, keep_BH = (input_BG[:, :both] + state_BG[:, :both]).sigmoid_().chunk(2, dim=1)
        new_BH = torch.addcmul(input_BG[:, both:], reset_BH, state_BG[:, both:]).tanh_()
        return (torch.lerp(new_BH, h_BH, keep_BH),)


class LstmCell(Cell):
    """Long short-term memory (Hochreiter & Schmidhuber 1997) with a forget gate (Gers et al. 2000)."""

    gates, carries = GATES["lstm"], CARRIES["lstm"]

    def forward(self, input_BG: Tensor, carried: Carried) -> Carried:
        h_BH, cell_BH = carried
        let_in, keep, new, let_out = (input_BG + self.state(h_BH).to(h_BH.dtype)).chunk(4, dim=1)
        cell_BH = keep.sigmoid() * cell_BH + let_in.sigmoid() * new.tanh()
        return let_out.sigmoid() * cell_BH.tanh(), cell_BH


CELLS: dict[CellName, type[Cell]] = {"gru": GruCell, "lstm": LstmCell}


@dataclass(frozen=True)
class Packing:
    """Where the real tokens of a padded batch stand, step after step, longest row first: padding costs nothing."""

    order_B: Tensor
    """Rows, longest first."""
    rows_N: Tensor
    """Row and position of each real token, the first tokens of all rows first."""
    positions_N: Tensor
    mirrored_N: Tensor
    """The position as seen from the end of its row."""
    sizes: list[int]
    """How many rows have a token at each step."""

    @classmethod
    def of(cls, mask_BS: Tensor) -> "Packing":
        """`mask_BS` is True at real tokens, which stand before the padding."""
        lengths_B = mask_BS.sum(dim=1)
        order_B = lengths_B.argsort(descending=True, stable=True)
        positions_N, places_N = mask_BS[order_B].t().nonzero(as_tuple=True)
        rows_N = order_B[places_N]
        mirrored_N = lengths_B[rows_N] - 1 - positions_N
        return cls(order_B, rows_N, positions_N, mirrored_N, mask_BS.sum(dim=0).tolist())


def read(cell: Cell, x_BSD: Tensor, packing: Packing, *, backwards: bool) -> tuple[Tensor, Carried]:
    """The state [B, S, H] at every token, zero at padding, and the last state of each row.

    Backwards, each row is read from its own end: its last state is the one at position 0.
    """
    at = (packing.rows_N, packing.mirrored_N if backwards else packing.positions_N)
    carried: Carried = (x_BSD.new_zeros(packing.sizes[0], cell.width),) * cell.carries
    states: list[Tensor] = []
    ended: list[Carried] = []
    for input_BG in cell.input(x_BSD[at]).to(x_BSD.dtype).split(packing.sizes):
        going = input_BG.shape[0]
        if going < carried[0].shape[0]:  # the shortest rows, which stand last, are over
            ended.append(tuple(part[going:] for part in carried))
            carried = tuple(part[:going] for part in carried)
        carried = cell(input_BG, carried)
        states.append(carried[0])
    ended.append(carried)
    back_B = packing.order_B.argsort()
    last = tuple(torch.cat(parts)[back_B] for parts in zip(*reversed(ended), strict=True))
    empty_BSH = x_BSD.new_zeros(*x_BSD.shape[:2], cell.width)
    return empty_BSH.index_put(at, torch.cat(states)), last


def unroll(cell: Cell, inputs_BTG: Tensor, carried: Carried) -> tuple[Tensor, Carried]:
    """All rows step by step from a given state: [B, T, H] and the last state."""
    states = []
    for input_BG in inputs_BTG.unbind(dim=1):
        carried = cell(input_BG, carried)
        states.append(carried[0])
    return torch.stack(states, dim=1), carried
