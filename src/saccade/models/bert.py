"""BERT: a stack that sees all of a text, pre-trained by guessing masked words and what follows (Devlin et al. 2018)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.arch.bert import BertConfig
from saccade.arch.heads import EncoderModel, WordsHead
from saccade.arch.positions import added
from saccade.arch.weights import flops
from saccade.models.blocks import build_blocks, build_norm, last_norm
from saccade.models.contract import Memory, TextEncoder
from saccade.models.heads import Pooler
from saccade.nn.dropout import Dropout
from saccade.nn.masks import Keys
from saccade.nn.positions import build_positions
from saccade.sites import Site


class BertEmbedding(nn.Module):
    """What a token is, where it stands, and which of two texts it is of: three vectors, added, then normalised."""

    def __init__(self, config: BertConfig, vocabulary: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, config.width)
        self.segments = nn.Embedding(config.segments, config.width) if config.segments else None
        self.positions = build_positions(added(config.positions), config.width)
        self.norm = build_norm(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, tokens_BT: Tensor, segments_BT: Tensor | None) -> Tensor:
        x: Tensor = self.tokens(tokens_BT)
        if self.segments is not None:
            x = x + (self.segments.weight[0] if segments_BT is None else self.segments(segments_BT))
        if self.positions is not None:
            length = tokens_BT.shape[1]
            x = x + self.positions(torch.arange(length, device=tokens_BT.device), length - 1)
        result: Tensor = self.dropout(self.norm(x))
        return result


class Bert(TextEncoder):
    """Every token looks at every token of its row."""

    def __init__(self, config: BertConfig, vocabulary: int) -> None:
        super().__init__()
        self.config, self.width, self.context = config, config.width, config.context
        self.embed = BertEmbedding(config, vocabulary)
        self.blocks = build_blocks(config, Site.encoder())
        self.norm = last_norm(config)
        _begin_small(self)

    def forward(self, source_MS: Tensor, mask_MS: Tensor | None = None, segments_MS: Tensor | None = None) -> Memory:
        x = self.embed(source_MS, segments_MS)
        mask = None if mask_MS is None else Keys(mask_MS)
        for block in self.blocks:
            x = block(x, mask)
        return Memory(self.norm(x), mask_MS)

    def flops(self, source: int) -> float:
        return flops(self.config.stack("source"), {"source": source})


class WordHead(nn.Module):
    """Which word stood there: a layer of its own, then the token vectors again as the output layer."""

    def __init__(self, encoder: Bert, epsilon: float) -> None:
        super().__init__()
        self.dense = nn.Linear(encoder.width, encoder.width)
        self.norm = nn.LayerNorm(encoder.width, eps=epsilon)
        _begin_small(self)
        self.head = nn.Linear(encoder.width, encoder.embed.tokens.num_embeddings)
        nn.init.zeros_(self.head.bias)
        self.head.weight = encoder.embed.tokens.weight

    def features(self, states: Tensor) -> Tensor:
        """[..., D]: what the output layer reads."""
        result: Tensor = self.norm(F.gelu(self.dense(states)))
        return result


class MaskedModel(nn.Module):
    """The encoder with what it is pre-trained by: masked words, and, for BERT, whether one text follows another."""

    def __init__(self, encoder: Bert, words: WordHead, *, follows: bool) -> None:
        super().__init__()
        self.encoder = encoder
        self.words = words
        self.pooler = Pooler(encoder.width) if follows else None
        self.follows = nn.Linear(encoder.width, 2) if follows else None
        for part in (self.pooler, self.follows):
            if part is not None:
                _begin_small(part)

    def forward(
        self, tokens_BT: Tensor, mask_BT: Tensor | None = None, segments_BT: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Logits of every position's word [B, T, V]; and of whether the second text follows the first [B, 2]."""
        memory: Memory = self.encoder(tokens_BT, mask_BT, segments_BT)
        return self.words.head(self.words.features(memory.states_MSD)), self.following(memory)

    def guess(
        self, tokens_BT: Tensor, chosen_BT: Tensor, mask_BT: Tensor | None = None, segments_BT: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Logits [N, V] of the chosen positions, row after row; and of whether the second text follows the first."""
        memory: Memory = self.encoder(tokens_BT, mask_BT, segments_BT)
        return self.words.head(self.words.features(memory.states_MSD[chosen_BT])), self.following(memory)

    def following(self, memory: Memory) -> Tensor | None:
        if self.pooler is None or self.follows is None:
            return None
        logits_B2: Tensor = self.follows(self.pooler(memory.states_MSD))
        return logits_B2

    def flops(self, tokens: int, masked: int) -> float:
        """Floating-point operations of one forward pass, output layer at masked positions only."""
        head = WordsHead(next_sentence=self.follows is not None)
        described = EncoderModel(encoder=self.encoder.config, head=head)
        vocabulary = self.encoder.embed.tokens.num_embeddings
        return flops(described.weights(vocabulary), {"source": tokens, "chosen": masked})


def build_masked(config: BertConfig, vocabulary: int, *, follows: bool) -> MaskedModel:
    """`vocabulary` counts the mask, whose id is the last."""
    encoder = Bert(config, vocabulary)
    return MaskedModel(encoder, WordHead(encoder, config.epsilon), follows=follows)


def _begin_small(module: nn.Module) -> None:
    """Matrices as BERT's begin; biases at nothing."""
    for name, weight in module.named_parameters():
        if weight.ndim >= 2:
            nn.init.normal_(weight, std=0.02)
        elif name.endswith("bias"):
            nn.init.zeros_(weight)
