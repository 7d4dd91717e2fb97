"""What several test files share: small models whose every weight matters, toy sequences, the same random numbers."""

from collections.abc import Callable, Sequence
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch
from torch import Tensor

from saccade import native
from saccade.arch.encoder_decoder import EncoderDecoderConfig, StackConfig
from saccade.arch.positions import AnyPositionsConfig, SinusoidalConfig
from saccade.data.batches import SequencePairs
from saccade.data.ragged import Ragged
from saccade.models.answering import TorchSequence, arrays_of
from saccade.models.contract import Memory
from saccade.models.encdec import EncoderDecoder, build_encoder_decoder
from saccade.pipelines.opening import SequenceModel
from saccade.runtime.contract import ArrayMemory, How
from saccade.runtime.open import Choice, SequenceRuntime
from saccade.sources.text import pad_sources
from saccade.tokens.marks import Marks

MARKS = Marks()
"""Toy sequences have no vocabulary."""

# The same examples on every machine: a test that fails must fail again for whoever looks into it.
hypothesis.settings.register_profile("saccade", deadline=None, derandomize=True, max_examples=60)
hypothesis.settings.load_profile("saccade")

FIRST_SYMBOL = MARKS.end + 1
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
    order: str = "pre",
    positions: AnyPositionsConfig | None = None,
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
            "feedforward": 2 * width,
            "order": order,
            "dropout": dropout,
            "positions": positions or SinusoidalConfig(),
            "combine": combine,
        },
        where="small model",
    )
    return shaken({"encoder": stack, "decoder": stack, "tie": tie}, vocabulary, seed)


_RNN = {"kind": "recurrent", "width": 16, "embed": 12}
_CONV = {"kind": "convolution", "width": 12, "layers": 2}
_STACK = {"kind": "transformer", "width": 12, "heads": 2, "layers": 2, "feedforward": 24}
ANCESTORS: dict[str, dict[str, Any]] = {
    "lstm": {
        "encoder": _RNN | {"cell": "lstm", "layers": 2, "bidirectional": False, "reverse": True},
        "decoder": _RNN | {"cell": "lstm", "layers": 2, "attention": "none", "context": "none"},
    },
    "gru context": {
        "encoder": _RNN | {"bidirectional": False},
        "decoder": _RNN | {"attention": "none", "context": "update"},
    },
    "gru additive": {"encoder": _RNN | {"layers": 2}, "decoder": _RNN},
    "lstm additive, two layers": {
        "encoder": _RNN | {"cell": "lstm"},
        "decoder": _RNN | {"cell": "lstm", "layers": 2},
    },
    "dot": {"encoder": _RNN, "decoder": _RNN | {"attention": "dot", "context": "output"}},
    "general": {"encoder": _RNN | {"width": 10}, "decoder": _RNN | {"attention": "general", "context": "output"}},
    "scaled dot, fed": {"encoder": _RNN, "decoder": _RNN | {"attention": "scaled-dot", "context": "feeding"}},
    "additive, fed": {"encoder": _RNN, "decoder": _RNN | {"layers": 2, "cell": "lstm", "context": "feeding"}},
    "context, fed": {"encoder": _RNN, "decoder": _RNN | {"attention": "none", "context": "feeding"}},
    "convolution": {"encoder": _CONV, "decoder": _CONV | {"kernel": 4}},
    "transformer to gru": {"encoder": _STACK, "decoder": _RNN},
    "gru to transformer": {"encoder": _RNN, "decoder": _STACK},
    "convolution to lstm": {"encoder": _CONV, "decoder": _RNN | {"attention": "none", "context": "update"}},
}
"""Every family but the Transformer, and mixtures: any encoder goes with any decoder."""


def ancestor(name: str, *, vocabulary: int = 20, dropout: float = 0.0, seed: int = 0) -> EncoderDecoder:
    """An untrained model of another family, in eval mode."""
    table = {part: {**options, "dropout": dropout} for part, options in ANCESTORS[name].items()}
    return shaken(table, vocabulary, seed)


def shaken(table: dict[str, Any], vocabulary: int, seed: int) -> EncoderDecoder:
    torch.manual_seed(seed)
    model = build_encoder_decoder(EncoderDecoderConfig.read({"tie": "none"} | table, where="small model"), vocabulary)
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


def tensors(sources: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor | None]:
    """Padded sources, and their mask."""
    source, mask = pad_sources(sources, MARKS)
    return torch.from_numpy(source), None if mask is None else torch.from_numpy(mask)


def read(model: EncoderDecoder, sources: Sequence[Sequence[int]]) -> Memory:
    """The memory of sources of any lengths, padded together, as PyTorch has it."""
    memory: Memory = model.read(*tensors(sources))
    return memory


def by_pytorch(model: EncoderDecoder) -> TorchSequence:
    """A PyTorch model behind the runtime's contract: arrays in, arrays out."""
    return TorchSequence(model, Choice("exact", "PyTorch", "a test asks for it"))


def on_plain(model: EncoderDecoder) -> SequenceRuntime:
    """The same weights in plain NumPy."""
    return SequenceRuntime(model.config, arrays_of(model), "exact")


def on_kernels(model: EncoderDecoder, how: How = "int16") -> SequenceRuntime:
    """The same weights on the C kernels."""
    if native.kernels() is None:
        pytest.skip(f"no C kernels: {native.why_not()}")
    runtime = SequenceRuntime(model.config, arrays_of(model), how)
    assert runtime.choice.engine == "kernels"
    return runtime


def read_arrays(model: SequenceModel, sources: Sequence[Sequence[int]]) -> ArrayMemory:
    """The memory of sources of any lengths, padded together, as a runtime has it."""
    return model.read(*pad_sources(sources, MARKS))


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
    return SequencePairs(Ragged.of(sources), Ragged.of([rewrite(source) for source in sources]), MARKS)
