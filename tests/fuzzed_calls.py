"""Calls of the C kernels with random shapes and numbers, bad ones among them; without PyTorch."""

import random
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np

from saccade import native
from saccade.arch.convolutions import ConvolutionsFrontEnd
from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.gpt import GptConfig
from saccade.arch.weights import Weights
from saccade.decode.choose import best_tokens
from saccade.runtime.contract import Floats, Ids
from saccade.runtime.kernel_pictures import KernelConvolutions
from saccade.runtime.kernel_state import KernelState
from saccade.runtime.kernels import KernelDecoder, KernelEncoder
from saccade.runtime.layers import part_of
from saccade.runtime.packing import Packed

POSITIONS = ({"kind": "rotary"}, {"kind": "rotary", "layout": "halves"}, {"kind": "learned", "length": 64})
BAD = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-40, 0.0, -0.0)


def numbers(chance: random.Random, *shape: int) -> Floats:
    """Random numbers of any size; in one of four arrays some are bad."""
    random_numbers = np.random.default_rng(chance.randrange(2**32))
    found = random_numbers.standard_normal(shape).astype(np.float32) * np.float32(10.0 ** chance.randint(-6, 6))
    if found.size and chance.random() < 0.25:
        for _ in range(chance.randint(1, 5)):
            found.flat[chance.randrange(found.size)] = chance.choice(BAD)
    return found


def ids(chance: random.Random, vocabulary: int, *shape: int) -> Ids:
    return np.random.default_rng(chance.randrange(2**32)).integers(0, vocabulary, shape)


def multiply(chance: random.Random) -> None:
    outputs, inputs, rows = chance.randint(1, 70), chance.randint(1, 300), chance.randint(0, 30)
    bias = numbers(chance, outputs) if chance.random() < 0.5 else None
    with native.single_threaded() if chance.random() < 0.5 else nullcontext():
        Packed.of(numbers(chance, outputs, inputs), bias, chance.choice([8, 16]))(numbers(chance, rows, inputs))


def convolve(chance: random.Random) -> None:
    """Stages of convolutions, pictures padded or not."""
    stage = {
        "width": chance.randint(1, 40),
        "kernel": chance.choice([1, 3, 5, 7]),
        "stride": [chance.randint(1, 3), chance.randint(1, 3)],
        "pool": [chance.randint(1, 3), chance.randint(1, 3)],
        "more": chance.randint(0, 1),
        "residual": chance.randint(0, 1),
    }
    sizes = {"height": chance.randint(1, 20), "width": chance.randint(1, 30), "channels": chance.randint(1, 5)}
    kinds = {"norm": chance.choice(["batch", "layer", "none"]), "activation": chance.choice(sorted(native.ACTIVATIONS))}
    table = sizes | kinds | {"stages": [stage], "attention": [1] if chance.random() < 0.3 else []}
    front = ConvolutionsFrontEnd.read(table, where="fuzz")
    weights = _weights(chance, front.weights(chance.randint(1, 20), 0, "source"))
    weights = {name: np.abs(one) if name.endswith("variance") else one for name, one in weights.items()}
    pictures = chance.randint(1, 4)
    mask = None
    if chance.random() < 0.5:
        mask = np.zeros((pictures, front.height, front.width), bool)
        for one in mask:
            one[: chance.randint(1, front.height), : chance.randint(1, front.width)] = True
    with np.errstate(all="ignore"):
        KernelConvolutions(front, weights, chance.choice([8, 16]))(
            numbers(chance, pictures, front.height, front.width, front.channels), mask
        )


def choose(chance: random.Random) -> None:
    vocabulary = chance.randint(1, 300)
    logits = numbers(chance, chance.randint(1, 20), vocabulary)
    if chance.random() < 0.3:
        logits[:, chance.randrange(vocabulary)] = -np.inf
    _, tokens = best_tokens(logits, chance.randint(1, vocabulary))
    assert ((tokens >= 0) & (tokens < vocabulary)).all()


def lose(chance: random.Random) -> None:
    """The loss of training, and its gradient in the place of the logits."""
    rows, vocabulary = chance.randint(1, 30), chance.randint(1, 200)
    rounded = chance.randint(0, 1)
    logits = ids(chance, 2**16, rows, vocabulary).astype(np.uint16) if rounded else numbers(chance, rows, vocabulary)
    labels = ids(chance, vocabulary, rows)
    likelihood, uniform = np.empty((2, rows), np.float32)
    at = [array.ctypes.data for array in (logits, labels, likelihood, uniform)]
    smoothing, gradient = chance.random() / 5, chance.randint(0, 1)
    sizes = rows, vocabulary
    native.needed().cross_entropy(at[0], rounded, at[1], *sizes, smoothing, gradient, *at[2:], native.threads())


def drop(chance: random.Random) -> None:
    count = chance.randint(1, 3000)
    x, f, y = (numbers(chance, count) for _ in range(3))
    start = x.ctypes.data if chance.random() < 0.7 else None
    limit, factor = chance.randrange(2**16), chance.random()
    native.needed().add_dropped(start, f.ctypes.data, y.ctypes.data, count, chance.randrange(2**63), limit, factor, 2)


def split(chance: random.Random) -> None:
    """Heads of training, forward and backward, in both kinds of numbers."""
    rows, positions, heads = chance.randint(1, 4), chance.randint(1, 9), chance.randint(1, 4)
    width = 2 * chance.randint(1, chance.choice([4, 256]))
    arrays, strides = [], []
    for _ in range(2):
        apart = heads * width + chance.randint(0, 5)
        rounded = chance.randint(0, 1)
        shape = (rows, positions, apart)
        arrays.append((ids(chance, 2**16, *shape).astype(np.uint16) if rounded else numbers(chance, *shape), rounded))
        strides.append(np.array([positions * apart, apart, width], np.int64))
    angles = [numbers(chance, positions, width // 2) for _ in range(2)]
    turned = chance.random() < 0.7
    native.needed().copy_heads(
        *(
            part
            for (array, rounded), stride in zip(arrays, strides, strict=True)
            for part in (array.ctypes.data, stride.ctypes.data, rounded)
        ),
        *(rows, positions, heads, width),
        *(angle.ctypes.data if turned else None for angle in angles),
        *(chance.randint(0, 1), chance.randint(0, 1), 2),
    )


def write(chance: random.Random) -> None:
    """A language model: prompts of different lengths, then a few tokens, rows that leave."""
    table = _block(chance) | {
        "context": 64,
        "positions": chance.choice(POSITIONS),
        "windows": [0, chance.randint(1, 9)],
    }
    if table["heads"] == 4 and chance.random() < 0.7:
        table["key_heads"] = chance.choice([1, 2])
    config, vocabulary = GptConfig.read(table, where="fuzz"), chance.randint(4, 60)
    weights = part_of(_weights(chance, config.weights(vocabulary)), "decoder")
    decoder = KernelDecoder(config, weights, chance.choice([8, 16]))
    _go_on(chance, decoder, decoder.start(None, chance.randint(1, 5)), vocabulary)


def translate(chance: random.Random) -> None:
    """An encoder and a decoder that looks at its memories."""
    block = _block(chance)
    table = {"encoder": block, "decoder": block | {"order": chance.choice(["pre", "post"])}, "tie": "none"}
    config, vocabulary = EncoderDecoderConfig.read(table, where="fuzz"), chance.randint(4, 60)
    weights, bits = _weights(chance, config.weights(vocabulary)), chance.choice([8, 16])
    encoder = KernelEncoder(config.encoder, part_of(weights, "encoder"), bits)  # type: ignore[arg-type]
    decoder = KernelDecoder(config.decoder, part_of(weights, "decoder"), bits)  # type: ignore[arg-type]
    texts, longest = chance.randint(1, 5), chance.randint(1, 40)
    lengths = np.array([longest, *(chance.randint(1, longest) for _ in range(texts - 1))])
    mask = np.arange(longest) < lengths[:, None]
    memory = encoder(ids(chance, vocabulary, texts, longest), mask)
    _go_on(chance, decoder, decoder.start(memory, chance.randint(1, 3)), vocabulary)


def _go_on(chance: random.Random, decoder: KernelDecoder, state: KernelState, vocabulary: int) -> None:
    rows, longest = len(state.lengths), chance.randint(1, 20)
    lengths = np.array([longest, *(chance.randint(1, longest) for _ in range(rows - 1))])
    prompt = ids(chance, vocabulary, rows, longest)
    _, state = decoder.extend(prompt, lengths, state, every=chance.random() < 0.3)
    for _ in range(chance.randint(0, 4)):
        state = state.reorder(ids(chance, rows, chance.randint(1, rows + 1)))
        rows = len(state.lengths)
        _, state = decoder.step(ids(chance, vocabulary, rows), state)


def _block(chance: random.Random) -> dict[str, object]:
    heads, size = chance.choice([1, 2, 3, 4]), chance.choice([2, 8, 10, 32, 34])
    return {
        "layers": chance.randint(1, 2),
        "width": heads * size,
        "heads": heads,
        "feedforward": chance.randint(1, 70),
        "order": chance.choice(["pre", "post"]),
        "norm": chance.choice(["layer", "rms"]),
        "activation": chance.choice(sorted(native.ACTIVATIONS)),
        "gated": chance.random() < 0.5,
    }


def _weights(chance: random.Random, described: Weights) -> dict[str, Floats]:
    found = {name: numbers(chance, *weight.shape) for name, weight in described.items() if not weight.same_as}
    return found | {name: found[weight.same_as] for name, weight in described.items() if weight.same_as}


CALLS: tuple[Callable[[random.Random], None], ...] = (
    *(multiply, convolve, choose, lose, drop, split, write, translate),
)
