"""PyTorch models behind the runtime's contract: arrays in, arrays out.

For the families that neither plain NumPy nor the kernels run (convolutions, XLNet), and for models in training, whose
weights are handed to the same runtime that later answers.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.heads import EncoderModel
from saccade.models import contract
from saccade.models.contract import AnyMemory, Memory, NamedMemories
from saccade.models.encdec import EncoderDecoder
from saccade.models.gpt import LanguageModel
from saccade.models.heads import ClassifierModel, TaggerModel
from saccade.nn.watch import TensorsHeard, watch
from saccade.runtime.contract import (
    AnyArrayMemory,
    ArrayMemories,
    ArrayMemory,
    ArraySources,
    Booleans,
    Floats,
    How,
    Ids,
    Source,
    last_of,
)
from saccade.runtime.open import Choice, EncoderRuntime, LanguageRuntime, SequenceRuntime, UnknownPart, unknown_to_plain
from saccade.runtime.sound import column_logprobs
from saccade.runtime.watch import ArraysHeard, edit_here, watcher
from saccade.sites import Look

Result = TypeVar("Result")


def sequence_runtime(model: EncoderDecoder, how: How | None = None) -> "SequenceRuntime | TorchSequence":
    """What answers with a model's present weights: its folder's runtime, or PyTorch if that does not know a part."""
    try:
        return SequenceRuntime(model.config, arrays_of(model), how)
    except UnknownPart:
        return TorchSequence(model.eval(), by_pytorch(model.config))


def language_runtime(model: LanguageModel, how: How | None = None) -> LanguageRuntime:
    return LanguageRuntime(model.config, arrays_of(model), how)


def encoder_runtime(model: nn.Module, config: EncoderModel, how: How | None = None) -> "EncoderRuntime | TorchEncoder":
    try:
        return EncoderRuntime(config, arrays_of(model), how)
    except UnknownPart:
        return TorchEncoder(model.eval(), config, by_pytorch(config))


def arrays_of(model: nn.Module) -> dict[str, np.ndarray]:
    """A model's weights by name, tied ones under all their names; they share memory with it where they can."""
    named = model.named_parameters(remove_duplicate=False)
    return {name: weight.detach().float().numpy(force=True) for name, weight in named}


def by_pytorch(config: EncoderDecoderConfig | EncoderModel) -> Choice:
    """Why a model runs in PyTorch."""
    if isinstance(config, EncoderDecoderConfig):
        unknown = unknown_to_plain((*config.readers.values(), config.decoder))
    else:
        unknown = unknown_to_plain((config.encoder,))
    return Choice("exact", "PyTorch", f"the other runtimes do not know {', '.join(unknown)}")


@dataclass(frozen=True)
class TorchState:
    """A PyTorch decoder's state."""

    inner: Any

    @property
    def rows(self) -> int:
        return int(self.inner.rows)

    @property
    def nbytes(self) -> int:
        return int(self.inner.nbytes)

    def reorder(self, rows: Ids) -> "TorchState":
        return TorchState(self.inner.reorder(torch.as_tensor(rows, device=self.inner.device)))

    def repeat(self, times: int) -> "TorchState":
        return TorchState(self.inner.repeat(times))

    def join(self, other: "TorchState") -> "TorchState":
        return TorchState(self.inner.join(other.inner))


class TorchDecoder:
    """A PyTorch decoder that writes arrays of ids."""

    def __init__(self, decoder: contract.Decoder, whole: nn.Module | None = None) -> None:
        """`whole` is the model it is a part of, by whose names watchers know its layers."""
        self.decoder, self.whole = decoder, decoder if whole is None else whole
        self.device = next(decoder.parameters()).device

    def start(self, memory: AnyArrayMemory | None, rows: int = 1) -> TorchState:
        with _running(self.whole):
            return TorchState(self.decoder.start(None if memory is None else self._memories(memory), rows))

    def extend(
        self, tokens_BT: Ids, lengths_B: Ids, state: TorchState, *, every: bool = False
    ) -> tuple[Floats, TorchState]:
        with _running(self.whole):
            logits, after = self.decoder.extend(self._own(tokens_BT), self._own(lengths_B), state.inner)
        logits_BTV = logits.numpy(force=True)
        return logits_BTV if every else last_of(logits_BTV, lengths_B), TorchState(after)

    def step(self, tokens_B: Ids, state: TorchState) -> tuple[Floats, TorchState]:
        with _running(self.whole):
            logits, after = self.decoder.step(self._own(tokens_B), state.inner)
        return logits.numpy(force=True), TorchState(after)

    def _own(self, numbers: Ids) -> Tensor:
        return torch.as_tensor(numbers, device=self.device)

    def _memories(self, memory: AnyArrayMemory) -> AnyMemory:
        if isinstance(memory, ArrayMemory):
            return self._memory(memory)
        return NamedMemories({name: self._memory(one) for name, one in memory.by_name.items()})

    def _memory(self, memory: ArrayMemory) -> Memory:
        parts = (memory.states_MSD, memory.mask_MS, memory.final_MF)
        states, mask, final = (None if part is None else torch.as_tensor(part, device=self.device) for part in parts)
        assert states is not None
        return Memory(states, mask, final, memory.grid)


class TorchSequence:
    """Encoders and a decoder in PyTorch."""

    def __init__(self, model: EncoderDecoder, choice: Choice) -> None:
        self.model, self.choice, self.config = model, choice, model.config
        self.decoder = TorchDecoder(model.decoder, model)

    def read(self, source: Source | ArraySources, mask_MS: Booleans | None = None) -> AnyArrayMemory:
        with _running(self.model):
            memory = self.model.read(*_tensors(self.model, source, mask_MS))
        if isinstance(memory, Memory):
            return _array_memory(memory)
        return ArrayMemories({name: _array_memory(one) for name, one in memory.by_name.items()})

    def columns(self, memory: AnyArrayMemory) -> Floats | None:
        if self.model.ctc is None or not isinstance(memory, ArrayMemory):
            return None
        return column_logprobs(
            {f"ctc.{n}": w.numpy(force=True) for n, w in self.model.ctc.named_parameters()}, memory.states_MSD
        )

    def look(self, source: Source | ArraySources, target_BT: Ids) -> ArraysHeard:
        with torch.inference_mode(), watch(self.model, edit_here()) as heard:
            self.model(*_tensors(self.model, source, None, target_BT))
        return as_arrays(heard)


class TorchEncoder:
    """An encoder with a head in PyTorch."""

    def __init__(self, model: nn.Module, config: EncoderModel, choice: Choice) -> None:
        self.model, self.choice, self.config, self.context = model, choice, config, config.context

    def outputs(
        self,
        tokens_BT: Source,
        mask_BT: Booleans | None = None,
        segments_BT: Ids | None = None,
        chosen_BT: Booleans | None = None,
    ) -> Floats:
        model: Any = self.model
        tokens, mask, segments, chosen = _tensors(self.model, tokens_BT, mask_BT, segments_BT, chosen_BT)
        with _running(self.model):
            if isinstance(model, ClassifierModel):
                found = model(tokens, mask, segments)
            elif isinstance(model, TaggerModel):
                found = model(tokens, mask, chosen)
            else:
                found = model.guess(tokens, chosen, mask, segments)[0]
        outputs: Floats = found.numpy(force=True)
        return outputs

    def look(self, tokens_BT: Source, segments_BT: Ids | None = None) -> ArraysHeard:
        model: Any = self.model
        tokens, segments = _tensors(self.model, tokens_BT, segments_BT)
        with torch.inference_mode(), watch(self.model, edit_here()) as heard:
            model.encoder(tokens, None, *(() if segments is None else (segments,)))
        return as_arrays(heard)


@contextmanager
def _running(model: nn.Module) -> Iterator[None]:
    """Without gradients. Who watches the runtime hears and edits the modules that stand in for it."""
    outer = watcher()
    with torch.inference_mode():
        if outer is None:
            yield
            return
        with watch(model, outer.edit) as heard:
            yield
        outer.looks.extend(as_arrays(heard))


def as_arrays(heard: TensorsHeard) -> ArraysHeard:
    """What was heard of PyTorch modules as the runtime records it."""
    return ArraysHeard(heard.edit, [Look(one.name, one.site, one.weights_BNTS.numpy(force=True)) for one in heard])


def _array_memory(memory: Memory) -> ArrayMemory:
    parts = (memory.mask_MS, memory.final)
    mask, final = (None if part is None else part.numpy(force=True) for part in parts)
    return ArrayMemory(memory.states_MSD.numpy(force=True), mask, final, memory.grid)


def _tensors(model: nn.Module, *arrays: Any) -> list[Any]:
    """Arrays, or several by name with their masks, where the model is."""
    device = next(model.parameters()).device

    def tensor(array: Any) -> Any:
        if isinstance(array, Mapping):
            return {name: tuple(map(tensor, pair)) for name, pair in array.items()}
        return None if array is None else torch.as_tensor(array, device=device)

    return [tensor(array) for array in arrays]
