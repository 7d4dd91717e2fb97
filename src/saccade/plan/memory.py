"""Bytes on each device while a model trains, and of keys and values while it answers."""

from dataclasses import dataclass

from saccade.arch.block import BlockConfig
from saccade.arch.recurrent import CARRIES, GATES, RecurrentDecoderConfig, RecurrentEncoderConfig
from saccade.arch.weights import Weights, parameters
from saccade.errors import WrongUse
from saccade.plan.devices import DeviceRecord
from saccade.plan.layout import Layout
from saccade.plan.subject import PlannedStack, Subject

BYTES = {"mixed": (2, 2, 12), "float32": (4, 4, 8)}
"""Of a weight, its gradient and the optimiser's state, which in mixed precision holds the weight in float32 too
(Rajbhandari et al. 2020, 3.1)."""
MEAN_BYTES = 4
"""Of one of Adam's two means, which Muon does without."""
GATHERED_BLOCKS = 2
"""Blocks whose weights a sharded device has whole: the one at work and the one that is fetched meanwhile."""
LOGITS_BYTES = 32 * 2**20
"""Logits, which become their own gradients, that the loss has at once; those of a long text are never all there."""
USABLE = 0.9
"""Share of a device's memory that a plan may fill; the rest is for the runtime, buffers and fragments."""


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes on one device."""

    weights: float
    gradients: float
    optimizer: float
    gathered: float
    """Whole blocks of a sharded model."""
    activations: float
    logits: float
    """Of the output layer, some at a time."""

    @property
    def total(self) -> float:
        return self.weights + self.gradients + self.optimizer + self.gathered + self.activations + self.logits

    def table(self) -> dict[str, float]:
        return {name: value for name, value in vars(self).items() if value} | {"total": self.total}


def memory_of(subject: Subject, layout: Layout) -> MemoryPlan:
    """Of the fullest device: the first of a pipeline, which also has the token vectors."""
    blocks = parameters(_inside_blocks(subject.weights))
    around = subject.stored - blocks
    mine = (blocks / layout.pipeline + around) / layout.tensor
    shared = mine / layout.sharded
    weight, gradient, state = BYTES[layout.precision]
    muon = layout.optimizer == "muon"
    gathered = GATHERED_BLOCKS * blocks / max(1, subject.layers) / layout.tensor if layout.sharded > 1 else 0.0
    return MemoryPlan(
        weights=weight * shared,
        gradients=gradient * shared,
        optimizer=state * shared
        - (MEAN_BYTES * blocks / layout.pipeline / layout.tensor / layout.sharded if muon else 0),
        gathered=weight * gathered,
        activations=layout.micro_batch * activations_of_text(subject, layout),
        logits=min(LOGITS_BYTES, _logits(subject, layout) * weight),
    )


def activations_of_text(subject: Subject, layout: Layout) -> float:
    """Bytes that the backward pass needs of one text. A stage of a pipeline holds as many texts as there are stages,
    of as many times fewer layers: the stages cancel out."""
    number = 2 if layout.precision == "mixed" else 4
    found = 0.0
    for stack in subject.stacks:
        whole = activations_of_block(stack, layout.tensor, number)
        if layout.checkpointing == "full":
            found += stack.layers * stack.length * stack.width * number + whole
        else:
            found += stack.layers * whole
    found += sum(number * length * _recurrent_numbers(config) for config, length in subject.recurrent)
    # Token vectors, the last norm, and the features before the output layer, whose logits are made in small parts.
    ends = sum(4 * stack.length * stack.width * number for stack in subject.stacks)
    return found + ends


def activations_of_block(stack: PlannedStack, tensor: int = 1, number: int = 2) -> float:
    """Bytes that the backward pass of one block needs of one text; with numbers of two bytes, four inner widths and
    dropout these are 34 T d (Korthikanti et al. 2022, 4.1), without the attention weights, which fused attention
    computes again. Norms and sums are whole on every device, the rest is divided among `tensor`."""
    config, width = stack.config, stack.width
    gated, relu = getattr(config, "gated", False), config.activation == "relu"
    inner = config.feedforward * (4 if gated else 1 if relu else 2)
    whole = 4 * width * number + (2 * width if config.dropout else 0)
    divided = (stack.projected + width + inner) * number
    per_token = whole + divided / tensor
    crossing = 0.0
    for seen in stack.seen:
        per_token += (2 * width + 2 * width / tensor) * number + (width if config.dropout else 0)
        crossing += seen * (2 * width / tensor) * number
    return stack.length * per_token + crossing


def _recurrent_numbers(config: RecurrentEncoderConfig | RecurrentDecoderConfig) -> int:
    """Of a position: its vector, and in each layer the gates, the states and what enters them."""
    return config.embed + config.layers * (GATES[config.cell] + CARRIES[config.cell] + 2) * config.width


def insist_it_fits(subject: Subject, layout: Layout, device: DeviceRecord) -> None:
    """Refuse a layout that needs more memory than the device has."""
    needed = memory_of(subject, layout).total
    if needed > USABLE * device.memory * 1e9:
        raise WrongUse(
            f"{subject.name} on {layout}: {needed / 1e9:,.1f} GB on each {device.name}, which has {device.memory:g} GB "
            f"({USABLE:.0%} of them to be planned with)"
        )


def cache_bytes(subject: Subject, tokens: int, number: int = 2) -> int:
    """Bytes of the keys and values of one text of so many tokens, while it is written."""
    stack = subject.stacks[-1] if subject.stacks else None
    if stack is None or not isinstance(stack.config, BlockConfig) or not stack.causal:
        return 0
    crossing = sum(stack.seen) * 2 * stack.width * stack.layers * number
    return stack.config.cache_bytes(tokens, number) + crossing


def requests_that_fit(subject: Subject, device: DeviceRecord, count: int = 1, number: int = 2) -> int:
    """Texts of full length that are written at the same time beside the weights."""
    each = cache_bytes(subject, subject.context, number)
    free = USABLE * device.memory * 1e9 * count - number * subject.stored
    return max(0, int(free // each)) if each else 0


def _logits(subject: Subject, layout: Layout) -> float:
    """Numbers that the output layer gives for the texts at once."""
    rows = sum(subject.counts.get(name, 0) for name in ("target", "chosen"))
    return layout.micro_batch * rows * subject.vocabulary / layout.tensor


def _inside_blocks(weights: Weights) -> Weights:
    return {name: weight for name, weight in weights.items() if ".blocks." in f".{name}" or ".layers." in f".{name}"}
