"""BERT: a stack that sees all of a text, pre-trained by guessing masked words and what follows (Devlin et al. 2018)."""

from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from saccade.config import Record
from saccade.models.contract import Memory, TextEncoder, matrix_weights
from saccade.models.heads import Pooler
from saccade.nn.block import Block, Blocks
from saccade.nn.dropout import Dropout
from saccade.nn.feedforward import FeedForward
from saccade.nn.masks import Keys
from saccade.nn.multihead import SelfAttention
from saccade.nn.norms import RESIDUALS
from saccade.nn.positions import AnyPositionsConfig, LearnedConfig, build_positions
from saccade.nn.rotary import RotaryConfig, build_rotary, insist_on_pairs


class BertConfig(Record):
    """An encoder that is pre-trained. The defaults are BERT's parts; RoBERTa is the same without segments."""

    kind: Literal["bert"] = "bert"
    layers: int = Field(4, ge=1, le=1000)
    """Blocks, one after the other."""
    width: int = Field(256, ge=2, le=65536)
    """Size of the vectors between blocks."""
    heads: int = Field(4, ge=1, le=1024)
    """Attentions side by side; they share the width."""
    hidden: int = Field(1024, ge=1, le=1_048_576)
    """Inner width of the feed-forward network."""
    activation: Literal["relu", "gelu"] = "gelu"
    """What stands between its two matrices."""
    norm: Literal["pre", "post"] = "post"
    """Layer norm after each sum, as in the paper, or before each sub-layer."""
    epsilon: float = Field(1e-12, gt=0, lt=1)
    """Keeps a norm finite; RoBERTa's is 1e-5."""
    context: int = Field(512, ge=8, le=1_000_000)
    """Tokens it reads at once, at most."""
    positions: AnyPositionsConfig = Field(default_factory=lambda data: LearnedConfig(length=data.get("context", 512)))
    """How a token knows where it stands: a vector per position, or rotary in every attention."""
    segments: int = Field(2, ge=0, le=16)
    """Kinds of vectors that say which of two texts a token is of; 0 is none."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Share of each sub-layer's output, and of the embedding, dropped in training."""

    @model_validator(mode="after")
    def _parts_fit(self) -> "BertConfig":
        if self.width % self.heads:
            raise ValueError(f"width {self.width} does not divide into {self.heads} heads")
        insist_on_pairs(self.positions, self.width, self.heads)
        if self.positions.kind == "sinusoidal" and self.width % 2:
            raise ValueError(f"sinusoidal positions need an even width, not {self.width}")
        if self.positions.kind == "learned" and self.positions.length < self.context:
            raise ValueError(f"a context of {self.context} needs as many positions, not {self.positions.length}")
        return self

    @property
    def least_weights(self) -> int:
        """How many weights the stack has at the very least, known without building it."""
        positions = self.positions.length * self.width if self.positions.kind == "learned" else 0
        return self.layers * (4 * self.width**2 + 2 * self.width * self.hidden) + positions


class BertEmbedding(nn.Module):
    """What a token is, where it stands, and which of two texts it is of: three vectors, added, then normalised."""

    def __init__(self, config: BertConfig, vocabulary: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, config.width)
        self.segments = nn.Embedding(config.segments, config.width) if config.segments else None
        # Rotary positions turn queries and keys inside every attention: nothing is added here.
        where = config.positions
        self.positions = None if isinstance(where, RotaryConfig) else build_positions(where, config.width)
        self.norm = nn.LayerNorm(config.width, eps=config.epsilon)
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
        self.width, self.context = config.width, config.context
        self.embed = BertEmbedding(config, vocabulary)
        self.blocks = Blocks(_block(config) for _ in range(config.layers))
        # Pre-norm leaves the sum of all blocks unnormalised; one norm more closes the stack.
        self.norm = nn.LayerNorm(config.width, eps=config.epsilon) if config.norm == "pre" else nn.Identity()
        _begin_small(self)

    def forward(self, source_MS: Tensor, mask_MS: Tensor | None = None, segments_MS: Tensor | None = None) -> Memory:
        x = self.embed(source_MS, segments_MS)
        mask = None if mask_MS is None else Keys(mask_MS)
        for block in self.blocks:
            x = block(x, mask)
        return Memory(self.norm(x), mask_MS)

    def flops(self, source: int) -> float:
        return 2.0 * source * matrix_weights(self.blocks)


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
        return self.encoder.flops(tokens) + 2.0 * masked * matrix_weights(self.words)


def build_masked(config: BertConfig, vocabulary: int, *, follows: bool) -> MaskedModel:
    """`vocabulary` counts the mask, whose id is the last."""
    encoder = Bert(config, vocabulary)
    return MaskedModel(encoder, WordHead(encoder, config.epsilon), follows=follows)


def _block(config: BertConfig) -> Block:
    rotary = build_rotary(config.positions, config.width, config.heads)
    norm = partial(nn.LayerNorm, eps=config.epsilon)
    return Block(
        SelfAttention(config.width, config.heads, rotary=rotary),
        FeedForward(config.width, config.hidden, config.activation),
        lambda: RESIDUALS[config.norm](config.width, config.dropout, norm),
    )


def _begin_small(module: nn.Module) -> None:
    """Matrices as BERT's begin; biases at nothing."""
    for name, weight in module.named_parameters():
        if weight.ndim >= 2:
            nn.init.normal_(weight, std=0.02)
        elif name.endswith("bias"):
            nn.init.zeros_(weight)
