"""Demonstrations: a command, and step after step what was seen and what was done -> padded batches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from saccade.data.ragged import Ragged
from saccade.sources.text import pad_sources
from saccade.tokens.marks import Marks

Render = Callable[[np.ndarray], np.ndarray]
"""What is kept of views [N, …] -> pictures [N, H, W, C], uint8."""


@dataclass(frozen=True)
class EpisodeBatch:
    """Episodes from their beginning to their end, which is an action, too."""

    source_BS: Tensor
    """The commands' words."""
    source_mask_BS: Tensor | None
    """None when no command is padded."""
    views_BTHWC: Tensor
    """What is seen before each action, uint8."""
    target_BT: Tensor
    """<s> a1 … an: what was done before."""
    labels_BT: Tensor
    """a1 … an </s>, or what was advised each time."""
    real_BT: Tensor
    """True where there is a step."""
    indices: np.ndarray
    """Numbers of the episodes, for error messages."""

    def rows(self, chosen: np.ndarray) -> "EpisodeBatch":
        """Some of its episodes."""
        return EpisodeBatch(
            self.source_BS[chosen],
            None if self.source_mask_BS is None else self.source_mask_BS[chosen],
            self.views_BTHWC[chosen],
            self.target_BT[chosen],
            self.labels_BT[chosen],
            self.real_BT[chosen],
            self.indices[chosen],
        )


@dataclass(frozen=True)
class Episodes:
    """Many demonstrations. An episode of n actions has n + 1 views."""

    commands: Ragged
    actions: Ragged
    views: np.ndarray
    """All views of all episodes, one after the other, as they are kept."""
    render: Render
    marks: Marks
    blind: bool = False
    """Views are black: what can be done without looking."""
    advised: Ragged | None = None
    """What should have been done at each view, where that is not what was done; there is then nothing about the end."""

    def __len__(self) -> int:
        return len(self.commands)

    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Lengths of commands and of actions, marks included."""
        return self.commands.lengths + 1, self.actions.lengths + 1

    def batch(self, indices: np.ndarray) -> EpisodeBatch:
        source, mask = pad_sources([self.commands[i] for i in indices], self.marks)
        target = self.actions.padded(indices, pad=self.marks.pad, before=1, after=1)
        target[:, 0] = self.marks.start
        lengths = self.actions.lengths[indices]
        if self.advised is None:
            labels = target[:, 1:].copy()
            labels[np.arange(len(indices)), lengths] = self.marks.end
        else:
            labels = self.advised.padded(indices, pad=self.marks.pad)
        real_BT = np.arange(labels.shape[1]) <= lengths[:, None]
        written, labelled, real = (torch.from_numpy(part) for part in (target[:, :-1].copy(), labels, real_BT))
        return EpisodeBatch(
            torch.from_numpy(source),
            None if mask is None else torch.from_numpy(mask),
            torch.from_numpy(self._views(indices, real_BT)),
            written,
            labelled,
            real,
            indices,
        )

    def _views(self, indices: np.ndarray, real_BT: np.ndarray) -> np.ndarray:
        # An episode's views begin where those before it, one more each than actions, end.
        firsts = self.actions.starts[:-1][indices] + indices
        places = np.concatenate([np.arange(first, first + n) for first, n in zip(firsts, real_BT.sum(1), strict=True)])
        pictures = self.render(self.views[places])
        views = np.zeros((*real_BT.shape, *pictures.shape[1:]), dtype=np.uint8)
        if not self.blind:
            views[real_BT] = pictures
        return views


def episodes_of(
    commands: Sequence[Sequence[int]], actions: Sequence[Sequence[int]], views: np.ndarray, render: Render, marks: Marks
) -> Episodes:
    """From ids of words and of actions."""
    found = Episodes(Ragged.of(commands), Ragged.of(actions), views, render, marks)
    wanted = int(found.actions.lengths.sum()) + len(found)
    if len(views) != wanted:
        raise ValueError(
            f"{len(found)} episodes with {wanted - len(found)} actions have {wanted} views, not {len(views)}"
        )
    return found
