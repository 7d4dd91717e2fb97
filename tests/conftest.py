"""What several test files share: small models whose every weight matters, toy sequences, the same random numbers."""

from collections.abc import Callable, Sequence

import hypothesis
import numpy as np
import pytest
import torch
from torch import Tensor

from saccade.data.batches import Ragged, SequencePairs, pad_sources
from saccade.models.contract import Memory
from saccade.models.encdec import EncoderDecoder, EncoderDecoderConfig, build_encoder_decoder
from saccade.models.transformer import StackConfig
from saccade.nn.positions import PositionsConfig, SinusoidalConfig
from saccade.tokens.bpe import END

# The same examples on every machine: a test that fails must fail again for whoever looks into it.
hypothesis.settings.register_profile("saccade", deadline=None, derandomize=True, max_examples=60)
hypothesis.settings.load_profile("saccade")

FIRST_SYMBOL = END + 1
"""The lowest id that is not a mark."""


@pytest.fixture(autouse=True)
def _same_numbers_each_time() -> None:
    torch.manual_seed(0)


def small_model(
    *,
    vocabulary: int = 20,
    width: int = 16,
    heads: int = 2,
    layers: int = 2,
    norm: str = "pre",
    positions: PositionsConfig | None = None,
    combine: str = "add",
    tie: str = "none",
    dropout: float = 0.0,
    seed: int = 0,
) -> EncoderDecoder:
    """An untrained model, in eval mode."""
    stack = StackConfig.read(
        {
            "layers": layers,
            "width": width,
            "heads": heads,
            "hidden": 2 * width,
            "norm": norm,
            "dropout": dropout,
            "positions": positions or SinusoidalConfig(),
            "combine": combine,
        },
        where="small model",
    )
    torch.manual_seed(seed)
    table = {"encoder": stack, "decoder": stack, "tie": tie}
    model = build_encoder_decoder(EncoderDecoderConfig.read(table, where="small model"), vocabulary)
    with torch.no_grad():
        # Fresh biases are zero and fresh norms one: left so, a model that forgot them would pass every test.
        for weight in model.parameters():
            if weight.ndim == 1:
                weight.add_(0.1 * torch.randn_like(weight))
    return model.eval()


def random_sequences(lengths: Sequence[int], *, vocabulary: int = 20, seed: int = 0) -> list[list[int]]:
    """Sequences of symbols, marks left out."""
    random = np.random.default_rng(seed)
    return [random.integers(FIRST_SYMBOL, vocabulary, size=length).tolist() for length in lengths]


def random_tokens_BT(rows: int, length: int, *, vocabulary: int = 20, seed: int = 0) -> Tensor:
    return torch.tensor(random_sequences([length] * rows, vocabulary=vocabulary, seed=seed))


def read(model: EncoderDecoder, sources: Sequence[Sequence[int]]) -> Memory:
    """The memory of sources of any lengths, padded together."""
    return model.read(*pad_sources(sources))


def toy_pairs(
    rewrite: Callable[[list[int]], list[int]], count: int, *, symbols: int = 10, longest: int = 8, seed: int = 0
) -> SequencePairs:
    """Distinct random sequences of 1 to `longest` symbols, each with what it should be rewritten to."""
    random = np.random.default_rng(seed)
    distinct: dict[tuple[int, ...], None] = {}
    while len(distinct) < count:
        length = int(random.integers(1, longest + 1))
        distinct[tuple((random.integers(symbols, size=length) + FIRST_SYMBOL).tolist())] = None
    sources = [list(sequence) for sequence in distinct]
    return SequencePairs(Ragged.of(sources), Ragged.of([rewrite(source) for source in sources]))
