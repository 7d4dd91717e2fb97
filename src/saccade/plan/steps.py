"""Seconds of a training step on many devices: products, then what devices wait for each other.

It is held against published runs in `published.py`, and against this machine by `python -m bench plan`.
"""

from dataclasses import dataclass

from saccade.arch.weights import parameters
from saccade.plan.compute import PASSES, training_flops
from saccade.plan.devices import DeviceRecord
from saccade.plan.layout import Layout
from saccade.plan.memory import BYTES
from saccade.plan.subject import Subject

REDUCTIONS = {"none": 4, "full": 6}
"""Sums over the tensor-parallel devices for each block: two forward, two backward (Shoeybi et al. 2019, figure 4), and
two more where blocks are computed again."""


@dataclass(frozen=True)
class Communication:
    """Bytes that each device sends in a step."""

    tensor: float
    data: float
    sharded: float
    pipeline: float

    def table(self) -> dict[str, float]:
        return {name: value for name, value in vars(self).items() if value}


@dataclass(frozen=True)
class StepTime:
    """Seconds of a step, by what is waited for."""

    compute: float
    tensor: float
    data: float
    pipeline: float
    """Of messages, and of stages that have nothing to do at the beginning and the end of a step."""

    @property
    def total(self) -> float:
        return self.compute + self.tensor + self.data + self.pipeline

    def table(self) -> dict[str, float]:
        return {name: value for name, value in vars(self).items() if value} | {"total": self.total}


def communication(subject: Subject, layout: Layout, batch: int) -> Communication:
    """Of a step of so many texts. A sum over n devices in a ring sends 2 (n - 1) / n of the numbers; gathering or
    scattering half of it."""
    weight, gradient, _ = BYTES[layout.precision]
    texts = batch / layout.replicas
    mine = parameters(subject.weights) / layout.tensor / layout.pipeline
    t, d, s = layout.tensor, layout.data, layout.sharded
    vectors = sum(stack.layers * stack.length * stack.width for stack in subject.stacks) / layout.pipeline
    edges = sum(stack.length * stack.width for stack in subject.stacks) if layout.pipeline > 1 else 0
    return Communication(
        tensor=REDUCTIONS[layout.checkpointing] * 2 * (t - 1) / t * vectors * weight * texts,
        data=2 * (d - 1) / d * gradient * mine / s,
        # Gathered for the forward and for the backward pass, and gradients scattered.
        sharded=(s - 1) / s * mine * (2 * weight + gradient),
        pipeline=2 * edges * weight * texts,
    )


def step_time(
    subject: Subject, layout: Layout, device: DeviceRecord, batch: int, *, overlapping: bool = True
) -> StepTime:
    """Of a step of `batch` texts. `overlapping`: gradients and shards travel during the backward pass, as DDP and FSDP
    have it; only what takes longer than that pass is waited for."""
    operations = training_flops(subject, batch * subject.tokens, checkpointing=layout.checkpointing)
    compute = operations / layout.devices / (device.teraflops * 1e12 * device.efficiency)
    sent = communication(subject, layout, batch)
    inside = (device.link if layout.tensor <= device.node else device.network) * 1e9
    between = (device.link if layout.devices <= device.node else device.network) * 1e9
    tensor = sent.tensor / inside
    hidden = compute * (1 - 1 / PASSES[layout.checkpointing]) if overlapping else 0.0
    data = max(0.0, (sent.data + sent.sharded) / between - hidden)
    micro_batches = max(1.0, batch / layout.replicas / layout.micro_batch)
    bubble = (layout.pipeline - 1) / micro_batches * (compute + tensor)
    return StepTime(compute, tensor, data, bubble + sent.pipeline / between)
