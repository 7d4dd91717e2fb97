"""What stands on an encoder once it is trained: a class or a number for a text or a picture, a tag for each word."""

from torch import Tensor, nn

from saccade.arch.heads import ClassHead
from saccade.models.contract import Encoder, Memory, TextEncoder
from saccade.nn.dropout import Dropout, TokenDropout


class Pooler(nn.Module):
    """A text as one vector: a layer on its first token, which has looked at all others (Devlin et al. 2018)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)

    def forward(self, states_MSD: Tensor) -> Tensor:
        result: Tensor = self.dense(states_MSD[:, 0]).tanh()
        return result


class ClassifierModel(nn.Module):
    """One of some classes, or, with a single output, a number, for a text, a pair of texts or a picture."""

    def __init__(self, encoder: Encoder, head: ClassHead, dropout: float, hide: TokenDropout | None = None) -> None:
        super().__init__()
        self.hide = hide or nn.Identity()
        self.encoder = encoder
        self.pooling = head.pooling
        self.pooler = Pooler(encoder.width) if head.pooling == "dense" else None
        self.dropout = Dropout(dropout)
        self.head = _small(nn.Linear(encoder.width, head.outputs))
        if self.pooler is not None:
            nn.init.normal_(self.pooler.dense.weight, std=0.02)
            nn.init.zeros_(self.pooler.dense.bias)

    def forward(self, tokens_BT: Tensor, mask_BT: Tensor | None = None, segments_BT: Tensor | None = None) -> Tensor:
        """[B, classes]; `tokens_BT` is what the encoder's front end takes."""
        logits: Tensor = self.head(self.features(tokens_BT, mask_BT, segments_BT))
        return logits

    def features(self, tokens_BT: Tensor, mask_BT: Tensor | None = None, segments_BT: Tensor | None = None) -> Tensor:
        """[B, D]: what the output layer reads."""
        segments = () if segments_BT is None else (segments_BT,)
        memory: Memory = self.encoder(self.hide(tokens_BT), mask_BT, *segments)
        result: Tensor = self.dropout(self._pooled(memory))
        return result

    def _pooled(self, memory: Memory) -> Tensor:
        if self.pooling == "mean":
            return memory.summary_MF
        whole: Tensor = memory.states_MSD[:, 0] if self.pooler is None else self.pooler(memory.states_MSD)
        return whole


class TaggerModel(nn.Module):
    """A tag for every word, read off the word's first piece."""

    def __init__(self, encoder: TextEncoder, outputs: int, dropout: float, hide: TokenDropout | None = None) -> None:
        super().__init__()
        self.hide = hide or nn.Identity()
        self.encoder = encoder
        self.dropout = Dropout(dropout)
        self.head = _small(nn.Linear(encoder.width, outputs))

    def forward(self, tokens_BT: Tensor, mask_BT: Tensor | None, words_BT: Tensor) -> Tensor:
        """[N, tags] of the positions that are True in `words_BT`, row after row."""
        logits: Tensor = self.head(self.features(tokens_BT, mask_BT, words_BT))
        return logits

    def features(self, tokens_BT: Tensor, mask_BT: Tensor | None, words_BT: Tensor) -> Tensor:
        """[N, D]: what the output layer reads."""
        memory: Memory = self.encoder(self.hide(tokens_BT), mask_BT)
        result: Tensor = self.dropout(memory.states_MSD[words_BT])
        return result


def _small(layer: nn.Linear) -> nn.Linear:
    nn.init.normal_(layer.weight, std=0.02)
    nn.init.zeros_(layer.bias)
    return layer
