"""How a model is divided among devices. A layout that cannot be is refused with the numbers, before anything starts."""

from typing import Literal

from pydantic import Field

from saccade.config import Record
from saccade.errors import WrongUse
from saccade.plan.subject import Subject

Checkpointing = Literal["none", "full"]


class Layout(Record):
    """Devices are a grid: data x sharded x pipeline x tensor."""

    data: int = Field(1, ge=1)
    """Copies of the model, each with its own part of a batch; gradients are added."""
    sharded: int = Field(1, ge=1)
    """Devices that share a copy's weights, gradients and optimiser state, gather weights block by block, and have their
    own part of a batch (ZeRO stage 3, FSDP)."""
    tensor: int = Field(1, ge=1)
    """Devices that share every matrix, by columns and rows (Shoeybi et al. 2019, 3)."""
    pipeline: int = Field(1, ge=1)
    """Devices that have a part of the layers each."""
    checkpointing: Checkpointing = "none"
    """full: of a block only its input is kept, and the block is computed again for the backward pass."""
    micro_batch: int = Field(1, ge=1)
    """Texts that a device computes at once."""
    precision: Literal["mixed", "float32"] = "mixed"
    """mixed: products in bfloat16, the optimiser in float32: 16 bytes a weight in all; float32: 16 too."""
    optimizer: Literal["adam", "muon"] = "adam"
    """muon: one mean instead of two for the matrices of the blocks, 4 bytes less for each of their weights."""

    @property
    def devices(self) -> int:
        return self.data * self.sharded * self.tensor * self.pipeline

    @property
    def replicas(self) -> int:
        """Parts into which a batch is divided."""
        return self.data * self.sharded

    def __str__(self) -> str:
        parts = {"data": self.data, "sharded": self.sharded, "tensor": self.tensor, "pipeline": self.pipeline}
        told = " × ".join(f"{count} {name}" for name, count in parts.items() if count > 1) or "one device"
        again = ", blocks computed again" if self.checkpointing == "full" else ""
        return f"{told}{again}, {self.micro_batch} text{'s' * (self.micro_batch > 1)} at once"


def problems(subject: Subject, layout: Layout, batch: int | None = None) -> list[str]:
    """Why a model cannot be divided so; `batch` is the number of texts of a step."""
    found = []
    tensor, pipeline = layout.tensor, layout.pipeline
    for stack in subject.stacks if tensor > 1 else ():
        if stack.heads % tensor:
            found.append(f"{stack.heads} attention heads of the {stack.name} do not divide among {tensor} devices")
        if stack.key_heads % tensor:
            found.append(f"{stack.key_heads} heads of keys and values do not divide among {tensor} devices")
        if stack.config.feedforward % tensor:
            found.append(f"a feed-forward width of {stack.config.feedforward:,} does not divide among {tensor} devices")
    if tensor > 1 and not subject.stacks:
        found.append("only stacks of Transformer blocks can be divided by columns and rows")
    if pipeline > max(1, subject.layers):
        found.append(f"{pipeline} stages, but only {subject.layers} layers")
    elif subject.layers % pipeline:
        found.append(f"{subject.layers} layers do not divide into {pipeline} stages")
    if batch is not None and batch % (layout.replicas * layout.micro_batch):
        found.append(
            f"a batch of {batch:,} texts does not divide into {layout.replicas:,} x {layout.micro_batch} at once"
        )
    return found


def insist(subject: Subject, layout: Layout, batch: int | None = None) -> None:
    """Refuse a layout that cannot be."""
    if found := problems(subject, layout, batch):
        raise WrongUse(f"{subject.name} on {layout}: {found[0]}")
