"""An attention head that is taught to align while the model learns to translate (Garg et al. 2019)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.arch.memories import named
from saccade.data.batches import SequenceBatch
from saccade.data.translation_table import diagonal_prior
from saccade.nn.watch import TensorsHeard
from saccade.sites import SOURCE

SURE = 0.02
"""The least agreement of two tokens from which a token is taught where to look."""


@dataclass(frozen=True)
class AlignmentHead:
    """One head of cross-attention, and the table that it is taught by."""

    layer: int
    """Counted from 0."""
    head: int
    weight: float
    """Of its loss beside that of the translation."""
    table_VV: Tensor
    """√(p(t|s) · p(s|t)) of source and target tokens."""

    @property
    def layer_name(self) -> str:
        """As the decoder names it."""
        return f"blocks.{self.layer}.{named('cross_attention', SOURCE)}"

    def loss(self, heard: TensorsHeard, batch: SequenceBatch) -> tuple[Tensor, int]:
        """The cross-entropy of where the head looks once it has read a token against where the token comes from, and of
        how many tokens. What is not sure teaches nothing."""
        assert isinstance(batch.source, Tensor)
        (look,) = heard
        # The look at which token t is the input is the one that decides token t + 1.
        weights_BTS = look.weights_BNTS[:, self.head, 1:]
        wanted_BTS = self.wanted(batch)
        sure_BT = wanted_BTS.sum(dim=-1) > 0
        logs_BTS = weights_BTS.float().clamp_min(1e-9).log()
        return -(wanted_BTS * logs_BTS).sum(), int(sure_BT.sum())

    def wanted(self, batch: SequenceBatch) -> Tensor:
        """[B, T, S]: where each token comes from, the end mark left out; nothing for a token that is not sure."""
        assert isinstance(batch.source, Tensor)
        tokens_BS, labels_BT = batch.source, batch.labels_BT[:, :-1]
        real_BS = torch.ones_like(tokens_BS, dtype=torch.bool) if batch.source_mask is None else batch.source_mask
        real_BT = torch.ones_like(batch.labels_BT, dtype=torch.bool) if batch.real_BT is None else batch.real_BT
        real_BT = real_BT[:, 1:]  # a token is read if another one, or the end, follows it
        table = self.table_VV.to(tokens_BS.device)
        agree_BST = table[tokens_BS[:, :, None], labels_BT[:, None, :]].float()
        prior_BST = torch.from_numpy(diagonal_prior(real_BS.numpy(force=True), real_BT.numpy(force=True)))
        joint_BTS = (agree_BST.square() * prior_BST.to(agree_BST.device)).transpose(1, 2)
        sure_BT1 = (agree_BST * prior_BST.to(agree_BST.device).sign()).amax(dim=1)[..., None] >= SURE
        found: Tensor = joint_BTS / joint_BTS.sum(dim=-1, keepdim=True).clamp_min(1e-12) * sure_BT1
        return found
