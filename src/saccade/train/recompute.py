"""Activation checkpointing: of a block only its input is kept, and the block runs again in the backward pass.

What was dropped the first time is dropped again: dropout draws from the state that its generator had before.
"""

from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint

from saccade.nn.block import Block
from saccade.nn.dropout import drawn_again


def recompute_blocks(model: nn.Module) -> int:
    """Let every Transformer block of the model be computed again; how many there are (Chen et al. 2016)."""
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    for block in blocks:
        # On the instance: FSDP and watchers hook the call around it, and see the block once.
        block.forward = _Recomputed(block.forward)  # type: ignore[method-assign]
    return len(blocks)


class _Recomputed:
    """A forward method that keeps its inputs only."""

    def __init__(self, forward: Any) -> None:
        self.forward = forward

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        return checkpoint(self.forward, *inputs, use_reentrant=False, context_fn=drawn_again, **named)
