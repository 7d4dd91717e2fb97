"""The operations of a Transformer in plain NumPy: products, norms, activations, attention, positions."""

from collections.abc import Callable, Mapping

import numpy as np

from saccade.arch.positions import RotaryConfig
from saccade.runtime.contract import Booleans, Floats, Ids
from saccade.runtime.watch import edited_mask, heads_off, tell, tell_arrays
from saccade.sites import Site
from saccade.tensors import StoredTensors

Weights = Mapping[str, Floats]
LOWEST = np.finfo(np.float32).min
"""Score of a hidden key. A finite number keeps a row in which all keys are hidden free of NaN."""


def part_of(weights: Weights, prefix: str) -> Weights:
    """The tensors below a name, by the rest of their names."""
    if isinstance(weights, StoredTensors):
        return weights.below(prefix)
    return {
        name.removeprefix(f"{prefix}."): weight for name, weight in weights.items() if name.startswith(f"{prefix}.")
    }


def renamed(weights: Weights, change: Callable[[str], str]) -> Weights:
    """The same tensors by other names."""
    if isinstance(weights, StoredTensors):
        return StoredTensors({change(name): stored for name, stored in weights.stored.items()})
    return {change(name): weight for name, weight in weights.items()}


def linear(weights: Weights, name: str, x: Floats) -> Floats:
    """W x + b for all vectors of x: one product of two matrices."""
    weight, bias = weights[f"{name}.weight"], weights.get(f"{name}.bias")
    y = x.reshape(-1, x.shape[-1]) @ weight.T
    if bias is not None:
        y += bias
    return y.reshape(*x.shape[:-1], len(weight))


def normalise(weights: Weights, name: str, x: Floats, epsilon: float) -> Floats:
    """Layer norm, or RMSNorm where there is no bias."""
    gain, shift = weights[f"{name}.weight"], weights.get(f"{name}.bias")
    if shift is not None:
        x = x - x.mean(axis=-1, keepdims=True)
    spread = np.square(x).mean(axis=-1, keepdims=True)
    y: Floats = x / np.sqrt(spread + np.float32(epsilon)) * gain
    return y if shift is None else y + shift


def softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    result: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return result


def relu(x: Floats) -> Floats:
    return np.maximum(x, 0)


def gelu(x: Floats) -> Floats:
    """x Φ(x), the error function to 1.5e-7 (Abramowitz & Stegun 7.1.26): NumPy has none."""
    z = np.abs(x) * np.float32(0.5**0.5)
    t = 1 / (1 + np.float32(0.3275911) * z)
    series = np.zeros_like(t)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = (series + np.float32(factor)) * t
    tail = 0.5 * series * np.exp(-z * z)
    result: Floats = x * np.where(x < 0, tail, 1 - tail)
    return result


def sigmoid(x: Floats) -> Floats:
    result: Floats = 0.5 * (1 + np.tanh(0.5 * x))
    return result


def silu(x: Floats) -> Floats:
    """x σ(x)."""
    small = np.exp(-np.abs(x))
    result: Floats = x * np.where(x < 0, small, 1) / (1 + small)
    return result


def gelu_tanh(x: Floats) -> Floats:
    """GPT-2's approximation of gelu."""
    inner = np.float32((2 / np.pi) ** 0.5) * (x + np.float32(0.044715) * x * x * x)
    result: Floats = 0.5 * x * (1 + np.tanh(inner))
    return result


ACTIVATIONS = {"relu": relu, "gelu": gelu, "gelu-tanh": gelu_tanh, "silu": silu}


def attend(
    name: str,
    site: Site,
    q: Floats,
    k: Floats,
    v: Floats,
    allowed: Booleans | None = None,
    bias_BNTS: Floats | None = None,
) -> Floats:
    """softmax(q·k / √H + bias) v for every head: [B, N, T, H]. `allowed` broadcasts to [B, N, T, S], True = may
    attend."""
    allowed = edited_mask(site, allowed, k.shape[-2])
    scores = q @ k.swapaxes(-1, -2) * np.float32(q.shape[-1] ** -0.5)
    if bias_BNTS is not None:
        scores = scores + bias_BNTS
    if allowed is not None:
        scores = np.where(allowed, scores, LOWEST)
    weights = softmax(scores)
    if allowed is not None:
        weights = np.where(allowed, weights, np.float32(0))
    context: Floats = weights @ v
    tell(name, site, weights)
    if off := heads_off(name, context.shape[1]):
        context[:, off] = 0
    tell_arrays(name, {"q": q, "k": k, "v": v, "scores": scores, "softmax": weights, "context": context})
    return context


def rotate(x_BNTH: Floats, positions_BT: Ids, config: RotaryConfig) -> Floats:
    """Pair i of the channels at position p turns by the angle p · base^(-2i/H) (Su et al. 2021, 3.2)."""
    width = x_BNTH.shape[-1]
    rates = (config.base ** (-np.arange(0, width, 2) / width)).astype(np.float32)
    angles = positions_BT[:, None, :, None].astype(np.float32) * rates
    cos, sin = np.cos(angles), np.sin(angles)
    half = width // 2
    if config.layout == "halves":
        one, other = x_BNTH[..., :half], x_BNTH[..., half:]
        return np.concatenate([one * cos - other * sin, one * sin + other * cos], axis=-1)
    one, other = x_BNTH[..., ::2], x_BNTH[..., 1::2]
    return np.stack([one * cos - other * sin, one * sin + other * cos], axis=-1).reshape(x_BNTH.shape)


def by_distance(weights: Weights, q_BNTH: Floats, keys: int, positions_BT: Ids) -> tuple[Floats, Floats]:
    """q + u, and (q + v)·W R_{i-j} / √H for every query i and key j (Dai et al. 2019, 3.3). Keys ahead of a query have
    the distance 0: masks hide them."""
    heads, width = q_BNTH.shape[1], q_BNTH.shape[3]
    part = "self_attention.relative"
    content, place = (weights[f"{part}.{name}_bias"].reshape(heads, 1, -1) for name in ("content", "place"))
    places_PD = sinusoids(keys, heads * width, "halves")
    r_NPH = linear(weights, f"{part}.place", places_PD).reshape(keys, heads, width).swapaxes(0, 1)
    scores_BNTP = (q_BNTH + place) @ r_NPH.swapaxes(1, 2) * np.float32(width**-0.5)
    distances_BTS = np.maximum(positions_BT[:, :, None] - np.arange(keys), 0)
    bias_BNTS = np.take_along_axis(scores_BNTP, np.broadcast_to(distances_BTS[:, None], scores_BNTP.shape), axis=-1)
    return q_BNTH + content, bias_BNTS


def split_heads(x_BTD: Floats, heads: int) -> Floats:
    """[B, T, D] -> [B, N, T, H]"""
    return x_BTD.reshape(*x_BTD.shape[:2], heads, -1).swapaxes(1, 2)


def merge_heads(x_BNTH: Floats) -> Floats:
    """[B, N, T, H] -> [B, T, D]"""
    return x_BNTH.swapaxes(1, 2).reshape(x_BNTH.shape[0], x_BNTH.shape[2], -1)


def sinusoids(count: int, width: int, layout: str) -> Floats:
    """PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(same) (Vaswani et al. 2017, 3.5)."""
    rates = np.exp(np.arange(0, width, 2, dtype=np.float32) * np.float32(-np.log(10_000.0) / width))
    angles = np.arange(count, dtype=np.float32)[:, None] * rates
    parts = (np.sin(angles), np.cos(angles))
    return np.concatenate(parts, axis=-1) if layout == "halves" else np.stack(parts, axis=-1).reshape(count, width)
