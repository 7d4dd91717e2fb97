"""Floating-point operations of training, for each part of a model: a product costs two for each weight and position.

Attention costs what its scores and its sums cost over all positions that it may look at, hidden ones included: that is
how papers count (Shoeybi et al. 2019; Narayanan et al. 2021, 5.1). The backward pass costs twice the forward pass.
"""

from saccade.arch.weights import flops
from saccade.plan.subject import Subject

PASSES = {"none": 3, "full": 4}
"""Forward passes that a step is worth: one forward, one backward that costs two, and perhaps one again."""


def forward_by_part(subject: Subject, *, depth: int = 3) -> dict[str, float]:
    """Operations of one forward pass over one text."""
    found: dict[str, float] = {}
    for name, weight in subject.weights.items():
        cost = flops({name: weight}, subject.counts)
        if cost:
            part = ".".join([part for part in name.split(".")[:-1] if not part.isdigit()][:depth])
            found[part] = found.get(part, 0.0) + cost
    for stack in subject.stacks:
        keys = sum(stack.keys(layer) for layer in range(stack.layers)) + stack.layers * sum(stack.seen)
        part = f"{stack.name}.blocks.attention weights"
        # Scores are products of queries and keys, contexts of weights and values.
        found[part] = found.get(part, 0.0) + 2 * 2.0 * stack.length * keys * stack.width
    return found


def forward_per_token(subject: Subject) -> float:
    """Operations of one forward pass, for each token of a text."""
    return sum(forward_by_part(subject).values()) / subject.tokens


def training_flops(subject: Subject, tokens: float, *, checkpointing: str = "none") -> float:
    """Of a training on so many tokens, counted part by part."""
    return PASSES[checkpointing] * forward_per_token(subject) * tokens


def six_n_d(parameters: float, tokens: float, factor: float = 6.0) -> float:
    """The rule of thumb 6 N D (Kaplan et al. 2020, 2.1); 3 N D for encoder and decoder, where a token passes half of
    the weights."""
    return factor * parameters * tokens


def petaflop_days(operations: float) -> float:
    """So many days at 10^15 operations a second."""
    return operations / (1e15 * 86_400)
