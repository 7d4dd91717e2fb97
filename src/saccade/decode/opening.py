"""A model folder's Transformer on the C kernels, without PyTorch."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from saccade import native
from saccade.decode.lean import LeanDecoder, LeanEncoder
from saccade.decode.packed import BITS, How
from saccade.decode.running import Running
from saccade.decode.stack import Stack
from saccade.folder import ModelFolder

Table = Mapping[str, Any]
Shapes = dict[str, tuple[int, ...]]
STACK_KEYS = {
    *("kind", "layers", "width", "heads", "hidden", "activation", "norm", "dropout", "positions", "combine"),
}
POSITIONS_KEYS = {
    "sinusoidal": {"kind", "layout"},
    "learned": {"kind", "length"},
    "rotary": {"kind", "base", "layout"},
    "none": {"kind"},
}


def open_running(folder: ModelFolder, vocabulary: int, how: How) -> Running | None:
    """None where the kernels do not know the model, or anything in the folder is not as it should be: `models/` then
    builds it, or says what is wrong. What is given to the kernels has the shapes the config asks for."""
    if how not in BITS or native.kernels() is None:
        return None
    try:
        return _open(folder, vocabulary, BITS[how])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _open(folder: ModelFolder, vocabulary: int, bits: int) -> Running | None:
    table = folder.config["model"]
    stacks: dict[str, Table] = {name: table[name] for name in ("encoder", "decoder")}
    known = table["kind"] == "encoder-decoder" and all(_is_known(stack) for stack in stacks.values())
    if not known or set(table) != {"kind", "encoder", "decoder", "tie"}:
        return None
    if sum(stack["layers"] for stack in stacks.values()) > len(folder.weights):
        return None  # absurd, and nothing is done a billion times to find out
    shapes = _shapes(stacks, vocabulary)
    weights = _untied(folder.weights, table["tie"])
    if {name: weight.shape for name, weight in weights.items()} != shapes or not folder.finite:
        return None
    encoder, decoder = (_stack(name, stack, weights) for name, stack in stacks.items())
    return Running(LeanEncoder(encoder, bits), LeanDecoder(decoder, bits))


def _is_known(stack: Table) -> bool:
    positions, heads = stack["positions"], stack["heads"]
    return (
        stack["kind"] == "transformer"
        and set(stack) == STACK_KEYS
        and set(positions) == POSITIONS_KEYS[positions["kind"]]
        and stack["activation"] in ("relu", "gelu")
        and stack["norm"] in ("pre", "post")
        and stack["combine"] in ("add", "concatenate")
        and positions.get("layout", "halves") in ("halves", "interleaved")
        and 1 < positions.get("base", 2) < math.inf
        and 0 <= stack["dropout"] < 1
        and all(type(stack[size]) is int and stack[size] > 0 for size in ("layers", "width", "heads", "hidden"))
        and stack["width"] % (4 * heads if stack["combine"] == "concatenate" else 2 * heads) == 0
    )


def _untied(stored: Mapping[str, np.ndarray], tie: str) -> dict[str, np.ndarray]:
    """Every matrix by its own name; those that are one are stored once, by the first of their names."""
    weights, tokens = dict(stored), "embed.tokens.weight"
    if tie == "all":
        weights[f"decoder.{tokens}"] = weights[f"encoder.{tokens}"]
    if tie != "none":
        weights["decoder.head.weight"] = weights[f"decoder.{tokens}"]
    return weights


def _shapes(stacks: Mapping[str, Table], vocabulary: int) -> Shapes:
    """The names and shapes of all weights, as `models/` would build them."""
    found: Shapes = {"decoder.head.weight": (vocabulary, stacks["decoder"]["width"])}
    for name, stack in stacks.items():
        width, beside = stack["width"], stack["combine"] == "concatenate" and stack["positions"]["kind"] != "none"
        part = width // 2 if beside else width
        found[f"{name}.embed.tokens.weight"] = (vocabulary, part)
        if stack["positions"]["kind"] == "learned":
            found[f"{name}.embed.positions.vectors.weight"] = (stack["positions"]["length"], part)
        linears = {
            "self_attention.project": (3 * width, width),
            "self_attention.out": (width, width),
            "feedforward.widen": (stack["hidden"], width),
            "feedforward.narrow": (width, stack["hidden"]),
        }
        norms = ["around_self", "around_feedforward"]
        if name == "decoder":
            linears["cross_attention.query"] = linears["cross_attention.out"] = (width, width)
            linears["cross_attention.project"] = (2 * width, stacks["encoder"]["width"])
            norms.append("around_cross")
        for block in (f"{name}.blocks.{number}" for number in range(stack["layers"])):
            for linear, shape in linears.items():
                found |= {f"{block}.{linear}.weight": shape, f"{block}.{linear}.bias": shape[:1]}
            for norm in norms:
                found |= dict.fromkeys((f"{block}.{norm}.norm.weight", f"{block}.{norm}.norm.bias"), (width,))
        if stack["norm"] == "pre":
            found |= dict.fromkeys((f"{name}.norm.weight", f"{name}.norm.bias"), (width,))
    return found


def _stack(name: str, stack: Table, weights: Mapping[str, np.ndarray]) -> Stack:
    positions, width, heads = stack["positions"], stack["width"], stack["heads"]
    beside = stack["combine"] == "concatenate" and positions["kind"] != "none"
    rates = None
    if positions["kind"] == "rotary":
        size = width // heads
        rates = (float(positions["base"]) ** (-np.arange(0, size, 2) / size)).astype(np.float32)
    return Stack(
        weights={key.removeprefix(f"{name}."): weight for key, weight in weights.items() if key.startswith(f"{name}.")},
        layers=stack["layers"],
        heads=heads,
        post=stack["norm"] == "post",
        gelu=stack["activation"] == "gelu",
        scale=math.sqrt(width // 2 if beside else width),
        sinusoids=positions["layout"] if positions["kind"] == "sinusoidal" else None,
        concatenate=beside,
        rates=rates,
        halves=rates is not None and positions["layout"] == "halves",
    )
