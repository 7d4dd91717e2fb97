"""A preset: a record of `arch/` with a vocabulary, what its paper says of its training, and its card."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.front_end import PatchesFrontEnd
from saccade.arch.gpt import GptConfig
from saccade.arch.heads import ClassHead, EncoderModel
from saccade.arch.weights import Weights, parameters, parameters_by_part
from saccade.arch.xlnet import XlnetConfig
from saccade.config import Table, changed
from saccade.errors import WrongUse

AnyModel = GptConfig | EncoderModel | EncoderDecoderConfig


@dataclass(frozen=True)
class Trained:
    """How the paper trained it; 0 and "" where it does not say."""

    tokens: float = 0.0
    """Seen in all, repetitions included."""
    device: str = ""
    """A row of `plan/devices.py`."""
    count: int = 0
    """Devices at the same time."""
    hours: float = 0.0
    batch_tokens: float = 0.0
    """In a step."""
    flops: float = 0.0
    """As the paper counts them."""
    data: str = ""
    """As the lectures' table has it."""
    note: str = ""
    """The same in the paper's words, for the card."""
    told_by: str = "paper"
    """Who says so."""


@dataclass(frozen=True)
class Preset:
    """One model."""

    name: str
    title: str
    paper: str
    model: AnyModel
    vocabulary: int
    published: str
    """The number of parameters as the paper prints it."""
    context: int
    """Tokens or patches of a training text."""
    trained: Trained = Trained()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What of the paper's training settings carries over to other sizes, by the keys of a recipe."""
    lectures: bool = False
    """A row of the lectures' table."""
    uncounted: tuple[str, ...] = ()
    """Parts that the published number leaves out, such as heads that only pre-training needs."""
    notes: tuple[str, ...] = ()
    """Where lectures, papers and code disagree."""

    @cached_property
    def weights(self) -> Weights:
        return self.model.weights(self.vocabulary)

    @property
    def counted(self) -> Weights:
        """The tensors that the published number counts."""
        return {
            name: weight
            for name, weight in self.weights.items()
            if not any(name.startswith(f"{part}.") for part in self.uncounted)
        }

    @cached_property
    def parameters(self) -> int:
        return parameters(self.counted)

    @property
    def task(self) -> str:
        """The task that trains it."""
        if isinstance(self.model, GptConfig):
            return "language"
        if isinstance(self.model, EncoderDecoderConfig):
            return "translation"
        return "pictures" if isinstance(self.model.head, ClassHead) else "masked"

    @property
    def model_table(self) -> Table:
        """The model as recipes of its task have it."""
        return self.model.encoder.table() if isinstance(self.model, EncoderModel) else self.model.table()

    def changed(self, changes: Sequence[tuple[str, Any]]) -> "Preset":
        """The same with other values of dotted keys, such as model.layers; it then is no size of the paper."""
        if not changes:
            return self
        record = type(self.model.encoder) if isinstance(self.model, EncoderModel) else type(self.model)
        table = changed({"model": self.model_table}, changes)
        if unknown := table.keys() - {"model"}:
            raise WrongUse(f"--set {min(unknown)}: of a preset only keys of its model can be changed: model.…")
        other = record.read(table["model"], where=self.name)
        model = self.model.model_copy(update={"encoder": other}) if isinstance(self.model, EncoderModel) else other
        assert isinstance(model, AnyModel)
        told = ", ".join(f"{key} = {value}" for key, value in changes)
        return replace(self, model=model, title=f"{self.title}, {told}", trained=Trained(), published="–")

    def card(self) -> str:
        """Markdown; `saccade show` prints it."""
        lines = [f"# {self.title}", "", self.paper, ""]
        lines += [f"- {name}: {value}" for name, value in sizes_of(self.model).items()]
        lines += [f"- {'image classes' if self.task == 'pictures' else 'vocabulary'}: {self._outputs:,}"]
        lines += [f"- context: {self.context:,}", f"- {_parts_told(self.model)}"]
        lines += [f"- parameters: {self.parameters:,} (published: {self.published})"]
        if left_out := parameters(self.weights) - self.parameters:
            lines.append(f"- not counted: {left_out:,} of {', '.join(self.uncounted)}, which pre-training needs")
        lines += [f"    - {part}: {count:,}" for part, count in parameters_by_part(self.counted).items()]
        if self.trained.note:
            lines.append(f"- training: {self.trained.note}")
        if self.trained.data:
            lines.append(f"- data: {self.trained.data}")
        lines += ["", *(f"[{number}] {note}" for number, note in enumerate(self.notes, 1))] if self.notes else []
        lines += ["", f"saccade plan {self.name}", f"saccade train {self.name} FILES --set {_smaller(self)}"]
        return "\n".join(lines)

    @property
    def _outputs(self) -> int:
        head = getattr(self.model, "head", None)
        return head.outputs if isinstance(head, ClassHead) else self.vocabulary


def stacks_of(model: AnyModel) -> Sequence[Any]:
    """The stacks of blocks of a model, in the order in which data meets them."""
    if isinstance(model, EncoderDecoderConfig):
        return [*model.readers.values(), model.decoder]
    return [model.encoder] if isinstance(model, EncoderModel) else [model]


def sizes_of(model: AnyModel) -> dict[str, str]:
    """A row of the lectures' table: layers, width, heads, feed-forward width."""
    stacks = stacks_of(model)
    first = stacks[0]
    return {
        "layers": "+".join(str(getattr(stack, "layers", "–")) for stack in stacks),
        "width": f"{first.width:,}",
        "heads": str(getattr(first, "heads", "–")),
        "feedforward": f"{first.feedforward:,}" if hasattr(first, "feedforward") else "–",
    }


def _parts_told(model: AnyModel) -> str:
    """Norms, positions and what else is not as in the first Transformer."""
    stack = stacks_of(model)[-1]
    if isinstance(stack, XlnetConfig):
        return "relative positions, norm after each sum"
    positions = "learned" if isinstance(getattr(stack, "front", None), PatchesFrontEnd) else stack.positions.kind
    told = [f"{positions} positions", f"{'RMSNorm' if stack.norm == 'rms' else 'layer norm'} "]
    told[1] += "before each sub-layer" if stack.order == "pre" else "after each sum"
    told += [f"{stack.key_heads} heads of keys and values"] if stack.key_heads else []
    told += [f"gated feed-forward ({stack.activation})"] if stack.gated else [stack.activation]
    told += ["no biases"] if not stack.bias else []
    told += [f"windows {', '.join(str(window or 'all') for window in stack.windows)}"] if any(stack.windows) else []
    return ", ".join(told)


def _smaller(preset: Preset) -> str:
    return "model.encoder.layers=2" if preset.task == "translation" else "model.layers=2"
