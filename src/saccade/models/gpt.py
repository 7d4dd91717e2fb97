"""GPT: a stack of masked self-attention that writes on (Radford et al. 2019), and the later turns of its parts."""

from torch import Tensor, nn

from saccade.arch.gpt import GptConfig
from saccade.arch.positions import added
from saccade.arch.weights import flops
from saccade.models.blocks import build_blocks, last_norm
from saccade.models.transformer import StackDecoder
from saccade.nn.embed import Embedding
from saccade.nn.masks import Documents
from saccade.sites import Site


class LanguageModel(nn.Module):
    """P(text): each token given those before it."""

    def __init__(self, decoder: StackDecoder, config: GptConfig) -> None:
        super().__init__()
        self.decoder = decoder
        self.config = config
        self.context = config.context

    def forward(self, tokens_BT: Tensor, documents_BT: Tensor | None = None) -> Tensor:
        """Logits [B, T, V] of the token that follows each position."""
        return self.decoder.logits(self.features(tokens_BT, documents_BT))

    def features(self, tokens_BT: Tensor, documents_BT: Tensor | None = None) -> Tensor:
        """[B, T, D]; `documents_BT` numbers the documents of a row, each of which keeps to itself."""
        return self.decoder.features(tokens_BT, only=None if documents_BT is None else Documents(documents_BT))

    def flops(self, tokens: int) -> float:
        """Floating-point operations of one forward pass over so many tokens, in weight matrices."""
        return flops(self.config.weights(self.decoder.head.out_features), {"target": tokens})


def build_gpt(config: GptConfig, vocabulary: int) -> LanguageModel:
    embed = Embedding(vocabulary, config.width, added(config.positions), dropout=config.dropout, scaled=False)
    head = nn.Linear(config.width, vocabulary, bias=False)
    blocks = build_blocks(config, Site.decoder())
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
    return LanguageModel(StackDecoder(embed, blocks, last_norm(config), head), config)
