"""The list of a model's tensors: names, shapes and how often each matrix is multiplied; counts and FLOPs from it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Weight:
    """One tensor."""

    shape: Shape
    per: str | None = None
    """Where it is multiplied: once for every "source" token, "target" token, "chosen" position or "row", or for every
    position of the memory of this name. None: only looked up or added."""
    same_as: str | None = None
    """The name under which the same tensor is stored: tied matrices are stored once."""
    learnt: bool = True
    """False for what is counted in training instead of learnt: the means and variances of batch norm."""

    @property
    def size(self) -> int:
        return prod(self.shape)


Weights = dict[str, Weight]


def linear(name: str, outputs: int, inputs: int, per: str, *, bias: bool = True) -> Weights:
    """y = W x + b."""
    found = {f"{name}.weight": Weight((outputs, inputs), per)}
    return found | {f"{name}.bias": Weight((outputs,))} if bias else found


def norm(name: str, width: int, kind: str = "layer") -> Weights:
    """A layer norm has a gain and a shift, an RMS norm only a gain (Zhang & Sennrich 2019)."""
    found = {f"{name}.weight": Weight((width,))}
    return found | {f"{name}.bias": Weight((width,))} if kind == "layer" else found


def table(name: str, rows: int, width: int) -> Weights:
    """Vectors that are looked up."""
    return {f"{name}.weight": Weight((rows, width))}


def tied(name: str, to: str, outputs: int, inputs: int, per: str) -> Weights:
    """A matrix that is stored under another name."""
    return {f"{name}.weight": Weight((outputs, inputs), per, same_as=f"{to}.weight")}


def within(prefix: str, weights: Weights) -> Weights:
    """The same tensors as parts of something larger."""
    return {
        f"{prefix}.{name}": replace(weight, same_as=f"{prefix}.{weight.same_as}") if weight.same_as else weight
        for name, weight in weights.items()
    }


def stored(weights: Weights) -> dict[str, Shape]:
    """Names and shapes as a model folder has them."""
    return {name: weight.shape for name, weight in weights.items() if weight.same_as is None}


def parameters(weights: Weights) -> int:
    """How many numbers are learnt."""
    return sum(weight.size for weight in weights.values() if weight.same_as is None and weight.learnt)


def parameters_by_part(weights: Weights, depth: int = 2) -> dict[str, int]:
    """The same by the first `depth` parts of the names; blocks are counted together."""
    found: dict[str, int] = {}
    for name, weight in weights.items():
        if weight.same_as is None and weight.learnt:
            parts = [part for part in name.split(".")[:-1] if not part.isdigit()]
            part = ".".join(parts[:depth])
            found[part] = found.get(part, 0) + weight.size
    return found


def flops(weights: Weights, counts: Mapping[str, int]) -> float:
    """Floating-point operations of one forward pass in weight matrices: a product costs two for each weight.

    `counts` says how many "source" tokens, "target" tokens, … there are.
    """
    return 2.0 * sum(weight.size * counts.get(weight.per, 0) for weight in weights.values() if weight.per is not None)


def difference(expected: Mapping[str, Shape], found: Mapping[str, Shape]) -> str | None:
    """The first tensor in which a file and a record disagree, in words; None where all are the same."""
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            return f"{name} is {found.get(name, 'missing')}, the config asks {expected.get(name, 'no such tensor')}"
    return None


def joined(parts: Iterable[Weights]) -> Weights:
    """All tensors of several parts."""
    found: Weights = {}
    for part in parts:
        found |= part
    return found
