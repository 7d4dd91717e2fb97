"""What papers say their trainings took: to hold counts and step times against."""

from dataclasses import dataclass
from functools import cached_property

from saccade.plan.choose import best_layout
from saccade.plan.compute import six_n_d
from saccade.plan.devices import DEVICES
from saccade.plan.layout import Layout
from saccade.plan.steps import step_time
from saccade.plan.subject import Subject
from saccade.presets.rows import PRESETS


@dataclass(frozen=True)
class TableD1:
    """A row of Brown et al. 2020, table D.1."""

    title: str
    petaflop_days: str
    """As printed."""
    millions: float
    billions: float
    """Of tokens."""
    factor: float = 6.0
    """3 for encoder and decoder, where a token passes half of the weights."""
    preset: str = ""

    @property
    def flops(self) -> float:
        return six_n_d(self.millions * 1e6, self.billions * 1e9, self.factor)


TABLE_D1 = [
    TableD1("T5-Small", "2.08", 60, 1000, 3),
    TableD1("T5-11B", "382", 11_000, 1000, 3),
    TableD1("BERT-Base", "1.89", 109, 250, preset="bert-base"),
    TableD1("BERT-Large", "6.16", 355, 250),
    TableD1("RoBERTa-Base", "17.4", 125, 2000, preset="roberta-base"),
    TableD1("RoBERTa-Large", "49.3", 355, 2000, preset="roberta-large"),
    TableD1("GPT-3 Small", "2.60", 125, 300, preset="gpt3-small"),
    TableD1("GPT-3 Medium", "7.42", 356, 300, preset="gpt3-medium"),
    TableD1("GPT-3 Large", "15.8", 760, 300, preset="gpt3-large"),
    TableD1("GPT-3 XL", "27.5", 1320, 300, preset="gpt3-xl"),
    TableD1("GPT-3 2.7B", "55.2", 2650, 300, preset="gpt3-2.7b"),
    TableD1("GPT-3 6.7B", "139", 6660, 300, preset="gpt3-6.7b"),
    TableD1("GPT-3 13B", "268", 12_850, 300, preset="gpt3-13b"),
    TableD1("GPT-3 175B", "3640", 174_600, 300, preset="gpt3"),
]


@dataclass(frozen=True)
class PublishedRun:
    """A training that was measured by those who did it."""

    title: str
    preset: str
    device: str
    count: int
    batch: int
    """Texts of a step."""
    seconds: float
    """Of a step."""
    source: str
    told: Layout | None = None
    """How it was divided, where that is told; else it is divided as `best_layout` does."""
    overlapping: bool = True

    @property
    def subject(self) -> Subject:
        return Subject.of(PRESETS[self.preset])

    @cached_property
    def layout(self) -> Layout:
        return self.told or best_layout(self.subject, DEVICES[self.device], self.count, self.batch)

    @property
    def predicted(self) -> float:
        device, batch = DEVICES[self.device], -(-self.batch // self.layout.replicas) * self.layout.replicas
        return step_time(self.subject, self.layout, device, batch, overlapping=self.overlapping).total

    @property
    def error(self) -> float:
        """Share by which the prediction is too long."""
        return self.predicted / self.seconds - 1


DAY = 86_400.0
PUBLISHED = [
    PublishedRun(
        "Megatron-LM 8.3 B, 512 V100", "megatron-8b", "v100", 512, 512, 2.1 * DAY / 68_507,
        "2.1 days for an epoch of 68,507 steps (Shoeybi et al. 2019, 5.2 and table 3)",
        told=Layout(data=64, tensor=8, micro_batch=8, checkpointing="full"), overlapping=False,
    ),
    PublishedRun(
        "GPT-3, 10,000 V100", "gpt3", "v100", 10_000, 1560, 14.8 * DAY * 1560 * 2048 / 300e9,
        "14.8 days (Patterson et al. 2021, table 4); the layout is not told: ours",
    ),
    PublishedRun(
        "Gopher, 4,096 TPU v3", "gopher", "tpu-v3", 4096, 3072, 920 * 3600 * 3072 * 2048 / 300e9,
        "920 hours for 300 B tokens (Rae et al. 2021); the sizes of the layout are not told: ours",
    ),
]  # fmt: skip


def comparison() -> list[tuple[str, ...]]:
    """A table, its header first: the step-time model against published runs."""
    header = ("run", "layout", "step, published", "step, planned", "error", "source")
    rows = [
        (
            run.title, str(run.layout), f"{run.seconds:.2f} s", f"{run.predicted:.2f} s", f"{run.error:+.0%}",
            run.source,
        )
        for run in PUBLISHED
    ]  # fmt: skip
    return [header, *rows]
