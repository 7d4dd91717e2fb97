"""The least number of devices that hold a model, and the layout for a number of them."""

from collections.abc import Iterator

from saccade.errors import WrongUse
from saccade.plan.devices import DeviceRecord
from saccade.plan.layout import Layout, problems
from saccade.plan.memory import USABLE, memory_of
from saccade.plan.steps import step_time
from saccade.plan.subject import Subject

MOST_DEVICES = 2**20
NEARLY = 1.1
"""Times the fastest step: so much longer may that of a simpler layout be."""


def layouts(subject: Subject, device: DeviceRecord, count: int) -> Iterator[Layout]:
    """The ways to divide a model among so many devices: tensor inside a node, then stages, then shards or copies."""
    precision = "float32" if device.name == "cpu" else "mixed"
    for tensor in divisors(count):
        if tensor > min(device.node, 16):
            continue
        for pipeline in divisors(count // tensor):
            if pipeline > max(1, subject.layers):
                break
            rest = count // tensor // pipeline
            for checkpointing in ("none", "full"):
                common = {"tensor": tensor, "pipeline": pipeline, "checkpointing": checkpointing}
                common["precision"] = precision
                yield Layout.model_validate(common | {"data": rest})
                if rest > 1:
                    yield Layout.model_validate(common | {"sharded": rest})


def best_layout(subject: Subject, device: DeviceRecord, count: int, batch: int) -> Layout:
    """The simplest one that fits and is nearly as fast as the fastest, by the model of `steps.py`; if none fits, the
    error says what is lacking."""
    found: list[tuple[float, Layout]] = []
    least: tuple[float, Layout] | None = None
    for layout in layouts(subject, device, count):
        if problems(subject, layout):
            continue
        needed = memory_of(subject, layout).total
        if least is None or needed < least[0]:
            least = needed, layout
        if needed <= USABLE * device.memory * 1e9:
            texts = -(-batch // layout.replicas) * layout.replicas  # a device without a text waits for the others
            found.append((step_time(subject, layout, device, texts).total, layout))
    if found:
        fastest = min(seconds for seconds, _ in found)
        return min((layout for seconds, layout in found if seconds <= NEARLY * fastest), key=_complexity)
    if least is None:
        raise WrongUse(f"{subject.name} cannot be divided among {count:,} devices")
    enough = least_devices(subject, device)
    raise WrongUse(
        f"{subject.name} does not fit on {count:,} {device.name} of {device.memory:g} GB: at least "
        f"{least[0] / 1e9:,.1f} GB on each ({least[1]}); "
        + (f"{enough:,} are enough" if enough else "no number of them is enough")
    )


def _complexity(layout: Layout) -> tuple[int, ...]:
    return layout.pipeline, layout.tensor, int(layout.checkpointing == "full"), layout.sharded


def least_devices(subject: Subject, device: DeviceRecord) -> int:
    """The smallest power of two of devices that hold the model in training; 0: none does."""
    count = 1
    while count <= MOST_DEVICES:
        for layout in layouts(subject, device, count):
            if not problems(subject, layout) and memory_of(subject, layout).total <= USABLE * device.memory * 1e9:
                return count
        count *= 2
    return 0


def divisors(number: int) -> list[int]:
    """In ascending order."""
    small = [n for n in range(1, int(number**0.5) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})
