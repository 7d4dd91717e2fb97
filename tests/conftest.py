"""What several test files share: small models whose every weight matters, toy sequences, the same random numbers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch
from torch import Tensor

from saccade import native
from saccade.arch.encoder_decoder import EncoderDecoderConfig, StackConfig
from saccade.arch.front_end import PictureFrontEnd
from saccade.arch.positions import AnyPositionsConfig, SinusoidalConfig
from saccade.arch.sound import SoundFrontEnd
from saccade.data.batches import SequencePairs
from saccade.data.ragged import Ragged
from saccade.models.answering import TorchSequence, arrays_of
from saccade.models.contract import AnyMemory
from saccade.models.encdec import EncoderDecoder, Sources, build_encoder_decoder
from saccade.pipelines.opening import SequenceModel
from saccade.runtime.contract import AnyArrayMemory, Array, ArraySources, How, Source
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
_FRONT = {"kind": "patches", "height": 24, "width": 6, "channels": 2, "patch": 2}
_PICTURES = {"kind": "transformer", "width": 8, "heads": 2, "layers": 1, "feedforward": 16, "front": _FRONT}
_STAGES = {"kind": "convolutions", "height": 24, "width": 6, "channels": 2, "attention": [2]}
_STAGES |= {"stages": [{"width": 6}, {"width": 8, "stride": [2, 1], "pool": [1, 2], "residual": 1, "more": 1}]}
_SOUND = {"kind": "sound", "mels": 6}
_HEARING = {"kind": "transformer", "width": 12, "heads": 2, "layers": 2, "feedforward": 24}
_HEARING |= {"front": _SOUND | {"stages": [{"width": 3, "stride": [2, 2]}, {"width": 4, "stride": [2, 1]}]}}
_TWO = {"picture": _PICTURES, "question": _RNN}
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
    "patches to transformer": {"encoder": _PICTURES, "decoder": _STACK},
    "patches to gru": {"encoder": _PICTURES, "decoder": _RNN},
    "patches, class token, post-norm": {
        "encoder": _PICTURES | {"front": _FRONT | {"class_token": True}, "order": "post"},
        "decoder": _STACK,
    },
    "gru over patches": {"encoder": _RNN | {"front": _FRONT}, "decoder": _RNN | {"attention": "general"}},
    "convolutions to transformer": {"encoder": _PICTURES | {"front": _STAGES}, "decoder": _STACK},
    "convolutions, layer norm, class token, to gru": {
        "encoder": _PICTURES | {"width": 10, "front": _STAGES | {"norm": "layer", "class_token": True}},
        "decoder": _RNN,
    },
    "gru over convolutions": {
        "encoder": _RNN | {"front": _STAGES | {"norm": "none", "activation": "gelu"}},
        "decoder": _RNN | {"attention": "general"},
    },
    "grid to gru": {"encoder": {"kind": "grid", "front": _STAGES | {"positions": False}}, "decoder": _RNN},
    "sound to transformer": {"encoder": _HEARING, "decoder": _STACK},
    "sound, conformer, to transformer": {
        "encoder": _HEARING | {"convolution": 5, "positions": {"kind": "rotary"}, "activation": "silu"},
        "decoder": _STACK,
    },
    "sound, conformer, post-norm, to gru": {
        "encoder": _HEARING | {"convolution": 3, "order": "post", "front": _SOUND},
        "decoder": _RNN,
    },
    "sound, pyramid, to lstm": {
        "encoder": _RNN | {"cell": "lstm", "layers": 3, "pyramid": 2, "front": _SOUND},
        "decoder": _RNN | {"cell": "lstm", "attention": "general", "context": "feeding"},
    },
    "two memories, transformer": {"encoders": {"picture": _PICTURES, "question": _STACK}, "decoder": _STACK},
    "two memories, post-norm": {"encoders": _TWO, "decoder": _STACK | {"order": "post"}},
    "two memories, gru": {"encoders": _TWO, "decoder": _RNN},
    "two memories, general, fed": {
        "encoders": _TWO,
        "decoder": _RNN | {"attention": "general", "context": "feeding", "layers": 2, "cell": "lstm"},
    },
    "two memories, no attention": {"encoders": _TWO, "decoder": _RNN | {"attention": "none", "context": "update"}},
    "one memory by its name": {"encoders": {"picture": _PICTURES}, "decoder": _STACK},
}
"""Every family but the Transformer, and mixtures: any encoders go with any decoder."""
SEVERAL = [name for name, table in ANCESTORS.items() if len(table.get("encoders", ())) > 1]
"""Those that look at several memories."""


def ancestor(name: str, *, vocabulary: int = 20, dropout: float = 0.0, seed: int = 0) -> EncoderDecoder:
    """An untrained model of another family, in eval mode."""
    table: dict[str, Any] = {}
    for part, options in ANCESTORS[name].items():
        if part == "encoders":
            table[part] = {memory: {**encoder, "dropout": dropout} for memory, encoder in options.items()}
        else:
            table[part] = {**options, "dropout": dropout}
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


def drawn(sources: Sequence[Sequence[int]], front: PictureFrontEnd) -> tuple[Source, Array | None]:
    """Each source as a picture one patch wide, with the mask of its pixels: a token, or the end mark, is a patch."""
    tokens_MS, mask_MS = pad_sources(sources, MARKS)
    side = front.patch
    inks = np.random.default_rng(0).standard_normal((100, side, side, front.channels)).astype(np.float32)
    pictures = inks[tokens_MS].reshape(len(tokens_MS), -1, side, front.channels)
    return pictures, None if mask_MS is None else mask_MS.repeat(side, axis=1)[..., None].repeat(side, axis=2)


def spoken(sources: Sequence[Sequence[int]], front: SoundFrontEnd, frames: int) -> tuple[Source, Array | None]:
    """Each source as frames of a sound, with their mask: a token, or the end mark, is as many as become one
    position."""
    tokens_MS, mask_MS = pad_sources(sources, MARKS)
    sounds = np.random.default_rng(0).standard_normal((100, frames, front.mels)).astype(np.float32)
    values = sounds[tokens_MS].reshape(len(tokens_MS), -1, front.mels)
    return values, None if mask_MS is None else mask_MS.repeat(frames, axis=1)


def given(config: EncoderDecoderConfig, sources: Sequence[Sequence[int]]) -> tuple[Source | ArraySources, Array | None]:
    """What a model's encoders read of sources of any lengths, padded together, and the mask of an only encoder. Each of
    several encoders reads the same sequences, in its own way."""
    inputs: dict[str, tuple[Source, Array | None]] = {}
    for name, reader in config.readers.items():
        front = reader.front_end
        if isinstance(front, PictureFrontEnd):
            inputs[name] = drawn(sources, front)
        elif isinstance(front, SoundFrontEnd):
            inputs[name] = spoken(sources, front, front.shrinks << getattr(reader, "pyramid", 0))
        else:
            inputs[name] = pad_sources(sources, MARKS)
    return (inputs, None) if len(inputs) > 1 else next(iter(inputs.values()))


def tensors(
    sources: Sequence[Sequence[int]], model: EncoderDecoder | None = None
) -> tuple[Tensor | Sources, Tensor | None]:
    """Padded sources, and their mask, as PyTorch has them."""
    source, mask = pad_sources(sources, MARKS) if model is None else given(model.config, sources)

    def tensor(array: Any) -> Any:
        return None if array is None else torch.from_numpy(array)

    if isinstance(source, Mapping):
        return {name: (tensor(one), tensor(its_mask)) for name, (one, its_mask) in source.items()}, None
    return tensor(source), tensor(mask)


def read(model: EncoderDecoder, sources: Sequence[Sequence[int]]) -> AnyMemory:
    """The memory of sources of any lengths, padded together, as PyTorch has it."""
    return model.read(*tensors(sources, model))


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


def read_arrays(model: SequenceModel, sources: Sequence[Sequence[int]]) -> AnyArrayMemory:
    """The memory of sources of any lengths, padded together, as a runtime has it."""
    return model.read(*given(model.config, sources))


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
