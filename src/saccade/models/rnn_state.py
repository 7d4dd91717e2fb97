"""What a recurrent decoder sees of a memory, how it looks at it, and what it carries from step to step."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from saccade.errors import UserError
from saccade.models.contract import State, join_memories, memories_kept
from saccade.nn.attention import Score, attend_unseen, tell
from saccade.nn.masks import Keys
from saccade.nn.recurrent import Carried
from saccade.nn.scores import Additive, Dot, General, ScaledDot
from saccade.sites import SOURCE, Site


@dataclass(frozen=True)
class Seen:
    """A memory as a recurrent decoder sees it."""

    keys_MSA: Tensor
    values_MSD: Tensor
    mask: Keys | None

    @property
    def nbytes(self) -> int:
        return self.keys_MSA.nbytes + self.values_MSD.nbytes

    def reorder(self, kept: Tensor) -> "Seen":
        mask = None if self.mask is None else Keys(self.mask.keys_BS.index_select(0, kept))
        return Seen(self.keys_MSA.index_select(0, kept), self.values_MSD.index_select(0, kept), mask)

    def join(self, other: "Seen") -> "Seen":
        masks = (None if seen.mask is None else seen.mask.keys_BS for seen in (self, other))
        (keys_MSA, values_MSD), mask_MS = join_memories(
            [self.keys_MSA, self.values_MSD], [other.keys_MSA, other.values_MSD], *masks
        )
        return Seen(keys_MSA, values_MSD, Keys(mask_MS))


class RecurrentLook(nn.Module):
    """States look at the memory. Several rows may share one: they are then more queries to the same keys."""

    def __init__(self, score: str, width: int, memory_width: int, memory: str = SOURCE) -> None:
        super().__init__()
        if score in ("dot", "scaled-dot") and width != memory_width:
            raise UserError(
                f"attention = {score!r} multiplies the decoder's states, {width} wide, with the encoder's, "
                f"{memory_width} wide: use 'general', or equal widths"
            )
        self.score = SCORES[score](width, memory_width)
        self.site = Site.cross(memory)

    def forward(self, q_BTH: Tensor, seen: Seen) -> Tensor:
        """[B, T, H] -> [B, T, D]"""
        context = attend_unseen(self, *_grouped(q_BTH, seen), score=self._compare(), mask=seen.mask)
        return context.reshape(*q_BTH.shape[:2], -1)

    def tell(self, q_BTH: Tensor, seen: Seen) -> None:
        """Watchers hear all steps as one look."""
        tell(self, *_grouped(q_BTH, seen), score=self._compare(), mask=seen.mask)

    def _compare(self) -> Score:
        """The score of keys that are prepared: for `general` that leaves a plain dot product."""
        if isinstance(self.score, Additive):
            return self.score.compare
        return Dot() if isinstance(self.score, General) else self.score


SCORES: dict[str, Callable[[int, int], Dot | Additive]] = {
    "additive": lambda width, memory_width: Additive(width, memory_width, hidden=width),
    "dot": lambda *_: Dot(),
    "general": General,
    "scaled-dot": lambda *_: ScaledDot(),
}


@dataclass(frozen=True)
class RecurrentState(State):
    """What is carried from step to step in every layer, what is fed into the next, and the memories."""

    layers: list[Carried]
    fed_BE: Tensor | None
    """The output before, where it is fed into the next step."""
    seen: Mapping[str, Seen]
    """The memories by name."""
    summary_MC: Tensor
    """All of them in one vector."""

    @property
    def rows(self) -> int:
        return self.layers[0][0].shape[0]

    @property
    def device(self) -> torch.device:
        return self.layers[0][0].device

    @property
    def nbytes(self) -> int:
        carried = [part for layer in self.layers for part in layer]
        fed = [] if self.fed_BE is None else [self.fed_BE]
        kept = sum(part.nbytes for part in (*carried, self.summary_MC, *fed))
        return kept + sum(one.nbytes for one in self.seen.values())

    @property
    def top_BH(self) -> Tensor:
        """The last layer's state."""
        return self.layers[-1][0]

    def reorder(self, rows: Tensor) -> "RecurrentState":
        after = self._each(lambda part: part.index_select(0, rows))
        kept = memories_kept(rows, self.rows, len(self.summary_MC))
        if kept is None:
            return after
        seen = {name: one.reorder(kept) for name, one in self.seen.items()}
        return replace(after, seen=seen, summary_MC=self.summary_MC.index_select(0, kept))

    def repeat(self, times: int) -> "RecurrentState":
        return self._each(lambda part: part.repeat_interleave(times, dim=0))

    def join(self, other: "RecurrentState") -> "RecurrentState":
        return replace(
            self._pairwise(other, lambda mine, theirs: torch.cat([mine, theirs])),
            seen={name: one.join(other.seen[name]) for name, one in self.seen.items()},
            summary_MC=torch.cat([self.summary_MC, other.summary_MC]),
        )

    def where(self, here_B: Tensor, other: "RecurrentState") -> "RecurrentState":
        """The rows marked True, and the other state's rows elsewhere."""
        return self._pairwise(other, lambda mine, theirs: torch.where(here_B[:, None], mine, theirs))

    def _each(self, change: Callable[[Tensor], Tensor]) -> "RecurrentState":
        layers = [tuple(change(part) for part in layer) for layer in self.layers]
        return replace(self, layers=layers, fed_BE=None if self.fed_BE is None else change(self.fed_BE))

    def _pairwise(self, other: "RecurrentState", change: Callable[[Tensor, Tensor], Tensor]) -> "RecurrentState":
        layers = [
            tuple(change(*parts) for parts in zip(mine, theirs, strict=True))
            for mine, theirs in zip(self.layers, other.layers, strict=True)
        ]
        fed = None if self.fed_BE is None or other.fed_BE is None else change(self.fed_BE, other.fed_BE)
        return replace(self, layers=layers, fed_BE=fed)


def _grouped(q_BTH: Tensor, seen: Seen) -> tuple[Tensor, Tensor, Tensor]:
    """Queries of rows that share a memory side by side, one head: [M, 1, K T, H], [M, 1, S, A], [M, 1, S, D]."""
    memories = len(seen.values_MSD)
    q = q_BTH.reshape(memories, 1, -1, q_BTH.shape[-1])
    return q, seen.keys_MSA[:, None], seen.values_MSD[:, None]
