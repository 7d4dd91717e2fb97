"""Where models and data meet: what is minimised, as sums and counts."""

from dataclasses import dataclass
from typing import Any, Protocol

import torch.nn.functional as F
from torch import Tensor, nn

from saccade.data.batches import SequenceBatch
from saccade.models.encdec import EncoderDecoder
from saccade.tokens.bpe import PAD

Losses = dict[str, tuple[Tensor, int]]
"""Each loss as its sum and how many it was summed over, divided once, across all micro-batches."""


class Objective(Protocol):
    """What the loop asks of a task."""

    def count(self, batch: Any) -> int:
        """How many items the loss of this batch is summed over."""
        ...

    def flops(self, model: nn.Module, batch: Any) -> float:
        """Useful floating-point operations of one training step on this batch: padding not counted."""
        ...

    def __call__(self, model: nn.Module, batch: Any) -> Losses:
        """The losses; `loss` is the one that is minimised."""
        ...


@dataclass(frozen=True)
class SequenceObjective:
    """Cross-entropy of each target token, given the source and the tokens before it, with label smoothing."""

    smoothing: float = 0.0

    def count(self, batch: SequenceBatch) -> int:
        return int((batch.labels_BT != PAD).sum())

    def flops(self, model: nn.Module, batch: SequenceBatch) -> float:
        assert isinstance(model, EncoderDecoder)
        source = batch.source_BS.numel() if batch.source_mask_BS is None else int(batch.source_mask_BS.sum())
        return 3 * model.flops(source, self.count(batch))  # backward costs twice the forward pass

    def __call__(self, model: nn.Module, batch: SequenceBatch) -> Losses:
        assert isinstance(model, EncoderDecoder)
        real_BT = batch.labels_BT != PAD
        memory = model.read(batch.source_BS, batch.source_mask_BS)
        features_BTD = model.decoder.features(batch.target_BT, memory)
        # Padding never reaches the output layer, the widest of all.
        features, labels = features_BTD[real_BT], batch.labels_BT[real_BT]
        logits = model.decoder.logits(features)
        logprobs = F.log_softmax(logits, dim=-1)
        nll = -logprobs.gather(1, labels[:, None]).sum()
        count = labels.shape[0]
        if not self.smoothing:
            return {"loss": (nll, count)}
        # (1-ε) on the label, ε spread evenly over the vocabulary (Szegedy et al. 2016, 7)
        uniform = -logprobs.mean(dim=-1).sum()
        return {"loss": ((1 - self.smoothing) * nll + self.smoothing * uniform, count), "nll": (nll.detach(), count)}
