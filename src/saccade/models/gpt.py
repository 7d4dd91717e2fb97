"""GPT: a stack of masked self-attention that writes on (Radford et al. 2019), and the later turns of its parts."""

from typing import Literal

from pydantic import Field, model_validator
from torch import Tensor, nn

from saccade.config import Record
from saccade.models.transformer import StackDecoder
from saccade.nn.block import Block, Blocks
from saccade.nn.embed import Embedding
from saccade.nn.feedforward import FeedForward, GatedFeedForward
from saccade.nn.masks import Documents
from saccade.nn.multihead import SelfAttention
from saccade.nn.norms import NORMS, PreNorm
from saccade.nn.positions import AnyPositionsConfig, LearnedConfig, NoPositionsConfig
from saccade.nn.rotary import RotaryConfig, build_rotary, insist_on_pairs

FEEDFORWARDS = {"plain": FeedForward, "gated": GatedFeedForward}


class GptConfig(Record):
    """A decoder-only stack. The defaults are GPT-2's parts; each may be turned into a later one."""

    kind: Literal["gpt"] = "gpt"
    layers: int = Field(6, ge=1, le=1000)
    """Blocks, one after the other."""
    width: int = Field(256, ge=2, le=65536)
    """Size of the vectors between blocks."""
    heads: int = Field(4, ge=1, le=1024)
    """Attentions side by side; they share the width."""
    key_heads: int | None = Field(None, ge=1, le=1024)
    """Heads of keys and values, shared by the query heads; as many as those if not said."""
    hidden: int = Field(1024, ge=1, le=1_048_576)
    """Inner width of the feed-forward network."""
    feedforward: Literal["plain", "gated"] = "plain"
    """gated: a second matrix decides what passes (SwiGLU, with silu)."""
    activation: Literal["relu", "gelu", "silu"] = "gelu"
    """What stands between the feed-forward network's matrices."""
    norm: Literal["layer", "rms"] = "layer"
    """Layer norm, or RMSNorm."""
    bias: bool = True
    """Whether linear layers have biases."""
    context: int = Field(256, ge=1, le=1_000_000)
    """Tokens it is trained on at once, and looks back over at most."""
    positions: AnyPositionsConfig = Field(default_factory=lambda data: LearnedConfig(length=data.get("context", 256)))
    """How a token knows where it stands: a vector per position, or rotary in every attention."""
    windows: tuple[int, ...] = Field((0,), min_length=1, max_length=1000)
    """How far back each layer looks, in turn: 0 is all the way; [0, 128] alternates dense and banded layers (GPT-3)."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share of each sub-layer's output, and of the embedding, dropped in training."""
    tie: bool = True
    """Token vectors and output layer are one matrix."""

    @model_validator(mode="after")
    def _parts_fit(self) -> "GptConfig":
        if self.width % self.heads:
            raise ValueError(f"width {self.width} does not divide into {self.heads} heads")
        if self.key_heads is not None and self.heads % self.key_heads:
            raise ValueError(f"{self.heads} heads cannot share {self.key_heads} heads of keys and values evenly")
        insist_on_pairs(self.positions, self.width, self.heads)
        if self.positions.kind == "sinusoidal" and self.width % 2:
            raise ValueError(f"sinusoidal positions need an even width, not {self.width}")
        if self.positions.kind == "learned" and self.positions.length < self.context:
            raise ValueError(f"a context of {self.context} needs as many positions, not {self.positions.length}")
        if any(window < 0 for window in self.windows):
            raise ValueError(f"a window is a number of positions, or 0 for all, not {min(self.windows)}")
        return self

    @property
    def least_weights(self) -> int:
        """How many weights the stack has at the very least, known without building it."""
        positions = self.positions.length * self.width if self.positions.kind == "learned" else 0
        shared = (self.key_heads or self.heads) / self.heads
        wide = 3 if self.feedforward == "gated" else 2
        return int(self.layers * self.width * ((2 + 2 * shared) * self.width + wide * self.hidden)) + positions


class LanguageModel(nn.Module):
    """P(text): each token given those before it."""

    def __init__(self, decoder: StackDecoder, context: int) -> None:
        super().__init__()
        self.decoder = decoder
        self.context = context

    def forward(self, tokens_BT: Tensor, documents_BT: Tensor | None = None) -> Tensor:
        """Logits [B, T, V] of the token that follows each position."""
        return self.decoder.logits(self.features(tokens_BT, documents_BT))

    def features(self, tokens_BT: Tensor, documents_BT: Tensor | None = None) -> Tensor:
        """[B, T, D]; `documents_BT` numbers the documents of a row, each of which keeps to itself."""
        return self.decoder.features(tokens_BT, only=None if documents_BT is None else Documents(documents_BT))

    def flops(self, tokens: int) -> float:
        """Floating-point operations of one forward pass over so many tokens, in weight matrices."""
        return self.decoder.flops(0, tokens)


def build_gpt(config: GptConfig, vocabulary: int) -> LanguageModel:
    # Rotary positions turn queries and keys inside every attention: nothing is added to the token vectors.
    added = NoPositionsConfig() if isinstance(config.positions, RotaryConfig) else config.positions
    embed = Embedding(vocabulary, config.width, added, dropout=config.dropout, scaled=False)
    head = nn.Linear(config.width, vocabulary, bias=False)
    blocks = Blocks(_block(config, config.windows[layer % len(config.windows)]) for layer in range(config.layers))
    for name, weight in [*blocks.named_parameters(), *head.named_parameters()]:
        if weight.ndim < 2:
            continue
        # Every block adds to the sum twice; smaller at first, the sum keeps its size (Radford et al. 2019, 2.3).
        last = name.endswith(("out.weight", "narrow.weight"))
        nn.init.normal_(weight, std=0.02 / (2 * config.layers) ** 0.5 if last else 0.02)
    for name, weight in blocks.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(weight)
    if config.tie:
        head.weight = embed.tokens.weight
    decoder = StackDecoder(embed, blocks, NORMS[config.norm](config.width), head)
    return LanguageModel(decoder, config.context)


def _block(config: GptConfig, window: int) -> Block:
    attention = SelfAttention(
        config.width,
        config.heads,
        key_heads=config.key_heads,
        rotary=build_rotary(config.positions, config.width, config.heads),
        window=window or None,
        bias=config.bias,
    )
    feedforward = FEEDFORWARDS[config.feedforward](config.width, config.hidden, config.activation, bias=config.bias)
    return Block(attention, feedforward, lambda: PreNorm(config.width, config.dropout, NORMS[config.norm]))
