"""A plan: everything that is known of a training before it starts, for one model."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import Field

from saccade.arch.weights import parameters_by_part
from saccade.config import Record
from saccade.errors import WrongUse
from saccade.plan.budget import optimal_tokens
from saccade.plan.choose import best_layout, least_devices
from saccade.plan.compute import forward_by_part, forward_per_token, petaflop_days, six_n_d, training_flops
from saccade.plan.devices import DeviceRecord
from saccade.plan.layout import Layout, insist
from saccade.plan.memory import MemoryPlan, cache_bytes, insist_it_fits, memory_of, requests_that_fit
from saccade.plan.steps import Communication, StepTime, communication, step_time
from saccade.plan.subject import Subject

BATCH_TOKENS = 500_000
"""Of a step, where nothing is said: that of GPT-3's smallest sizes."""


class Wishes(Record):
    """What is asked for; what is not said is taken from the paper, or chosen."""

    tokens: float | None = Field(None, gt=0)
    """That the model sees in all."""
    count: int | None = Field(None, ge=1, le=2**20)
    """Devices."""
    hours: float | None = Field(None, gt=0)
    """That they work; then the utilisation is what is found out."""
    days: float | None = Field(None, gt=0)
    """The same in days."""
    utilisation: float | None = Field(None, gt=0, le=1)
    """Share of the peak that is reached in all, instead of the step-time model."""
    batch_tokens: float | None = Field(None, gt=0)
    """Of a step."""
    layout: Layout | None = None
    """How the model is divided."""


@dataclass(frozen=True)
class Plan:
    """Of one model on so many devices."""

    subject: Subject
    device: DeviceRecord
    wishes: Wishes = field(default_factory=Wishes)

    def __post_init__(self) -> None:
        if self.wishes.hours and self.wishes.days:
            raise WrongUse("--hours and --days say the same: give one of them")
        if self.wishes.layout is not None:
            insist(self.subject, self.wishes.layout)
            insist_it_fits(self.subject, self.wishes.layout, self.device)
            if self.wishes.count not in (None, self.wishes.layout.devices):
                count = self.wishes.layout.devices
                raise WrongUse(f"{self.wishes.layout} are {count:,} devices, but --count is {self.wishes.count:,}")

    # What is trained

    @cached_property
    def tokens(self) -> float:
        """The paper's number, or the compute-optimal one."""
        return self.wishes.tokens or self.subject.trained.tokens or optimal_tokens(self.subject.parameters)

    @property
    def tokens_told(self) -> str:
        if self.wishes.tokens:
            return "as asked for"
        trained = self.subject.trained
        return f"the {trained.told_by}'s number" if trained.tokens else "20 for each parameter (Hoffmann et al. 2022)"

    @cached_property
    def batch(self) -> int:
        """Texts of a step."""
        tokens = self.wishes.batch_tokens or self.subject.trained.batch_tokens or BATCH_TOKENS
        return max(1, round(tokens / self.subject.tokens))

    @property
    def steps(self) -> float:
        return self.tokens / self.subject.tokens / self.batch

    # Operations

    @cached_property
    def flops(self) -> dict[str, float]:
        """Of the whole training, by who counts them; the first is what utilisation is said by."""
        trained = self.subject.trained
        found = {"as the paper counts": trained.flops} if trained.flops and self.tokens == trained.tokens else {}
        factor = 6.0 if self.subject.tokens == self.subject.context else 3.0
        rule = f"by {factor:g} N D"
        return found | {
            "part by part": training_flops(self.subject, self.tokens),
            rule: six_n_d(self.subject.parameters, self.tokens, factor),
        }

    # Where

    @cached_property
    def least_devices(self) -> int:
        return least_devices(self.subject, self.device)

    @cached_property
    def count(self) -> int:
        """As asked for; the paper's, on its device; or the least."""
        if self.wishes.layout is not None:
            return self.wishes.layout.devices
        if self.wishes.count is not None:
            return self.wishes.count
        trained = self.subject.trained
        if trained.device == self.device.name and trained.count:
            return trained.count
        if not self.least_devices:
            raise WrongUse(f"no number of {self.device.name} holds {self.subject.name} in training")
        return self.least_devices

    @cached_property
    def layout(self) -> Layout:
        return self.wishes.layout or best_layout(self.subject, self.device, self.count, self.batch)

    @cached_property
    def memory(self) -> MemoryPlan:
        return memory_of(self.subject, self.layout)

    @cached_property
    def communication(self) -> Communication:
        return communication(self.subject, self.layout, self.batch)

    @cached_property
    def step(self) -> StepTime:
        texts = -(-self.batch // self.layout.replicas) * self.layout.replicas
        return step_time(self.subject, self.layout, self.device, texts)

    # How long, and what it costs

    @cached_property
    def hours(self) -> float:
        wishes = self.wishes
        if wishes.hours or wishes.days:
            return wishes.hours or 24 * (wishes.days or 0.0)
        if wishes.utilisation:
            first = next(iter(self.flops.values()))
            return first / (self.count * self.device.teraflops * 1e12 * wishes.utilisation) / 3600
        return self.steps * self.step.total / 3600

    @property
    def hours_told(self) -> str:
        if self.wishes.hours or self.wishes.days:
            return "as asked for"
        if self.wishes.utilisation:
            return f"at an assumed {self.wishes.utilisation:.1%} of the peak"
        return f"assumed: {self.device.efficiency:.0%} of the peak on one device ({self.device.assumed})"

    @cached_property
    def utilisation(self) -> dict[str, float]:
        """Share of the peak of all devices, by who counts the operations."""
        peak = self.count * self.device.teraflops * 1e12 * self.hours * 3600
        return {who: flops / peak for who, flops in self.flops.items()}

    @property
    def dollars(self) -> float | None:
        return None if self.device.price is None else self.count * self.hours * self.device.price

    @property
    def megawatt_hours(self) -> float:
        """Of the devices alone: machines around them and cooling come on top."""
        return self.count * self.hours * self.device.watts / 1e6

    # Answering

    @property
    def cache_per_token(self) -> float:
        """Bytes of keys and values, in numbers of two bytes."""
        return cache_bytes(self.subject, self.subject.context) / self.subject.context

    @property
    def requests(self) -> int:
        """Texts of full length at the same time, on as few devices as hold the weights and some of them."""
        return requests_that_fit(self.subject, self.device, self.answering_devices)

    @property
    def answering_devices(self) -> int:
        """The smallest power of two that holds the weights in two bytes, and one text."""
        count = 1
        while not requests_that_fit(self.subject, self.device, count) and count < 2**20 and self.cache_per_token:
            count *= 2
        return count

    def table(self) -> dict[str, Any]:
        """As plain values, for --format json."""
        subject = self.subject
        return {
            "name": subject.name,
            "title": subject.title,
            "parameters": subject.parameters,
            "parameters_by_part": parameters_by_part(subject.weights),
            "context": subject.context,
            "tokens": self.tokens,
            "flops": self.flops,
            "petaflop_days": {who: petaflop_days(flops) for who, flops in self.flops.items()},
            "forward_flops_per_token": forward_per_token(subject),
            "forward_flops_per_token_by_part": {
                part: cost / subject.tokens for part, cost in forward_by_part(subject).items()
            },
            "device": self.device.table(),
            "count": self.count,
            "least_devices": self.least_devices,
            "batch_texts": self.batch,
            "steps": self.steps,
            "layout": self.layout.table(),
            "memory_bytes": self.memory.table(),
            "communication_bytes": self.communication.table(),
            "step_seconds": self.step.table(),
            "hours": self.hours,
            "utilisation": self.utilisation,
            "dollars": self.dollars,
            "megawatt_hours": self.megawatt_hours,
            "cache_bytes_per_token": self.cache_per_token,
            "requests": self.requests,
            "answering_devices": self.answering_devices,
            "notes": list(subject.notes),
        }
