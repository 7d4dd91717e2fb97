"""What a classifier's probabilities are made of: its encoder's at a temperature, perhaps mixed with a linear model's.

The linear model reads n-grams (`data/ngrams.py`). It was fitted by scikit-learn and is kept as plain arrays in the file
linear.safetensors of the model folder; here it answers in NumPy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from pydantic import Field
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from saccade.config import Record
from saccade.data.ngrams import KINDS, Ngrams, Sparse, counted
from saccade.errors import UserError
from saccade.folder import ModelFolder
from saccade.runtime.contract import Floats

LINEAR = "linear.safetensors"
LARGEST_LINEAR = 8 * 2**20
AT_ONCE = 256
"""Texts whose features are held at a time."""


class MixtureSettings(Record):
    """How log-probabilities become the ones that are told: softmax(encoder · log p + linear · log p of n-grams)."""

    encoder: float = Field(1.0, ge=0, le=1000)
    """Weight of the encoder's log-probabilities. Alone, it is the inverse of the temperature."""
    linear: float = Field(0.0, ge=0, le=1000)
    """Weight of the linear model's; 0: there is none."""

    def __str__(self) -> str:
        """For people."""
        if not self.linear:
            return f"of the encoder at temperature {1 / self.encoder:.2f}" if self.encoder else "all equal"
        whole = self.encoder + self.linear
        return (
            f"a mixture, {self.encoder / whole:.0%} of the encoder and {self.linear / whole:.0%} of a linear model on "
            f"n-grams of words and letters, at temperature {1 / whole:.2f}"
        )


@dataclass(frozen=True)
class LinearModel:
    """Log-probabilities of classes from n-grams."""

    ngrams: Sequence[Ngrams]
    weights_KC: np.ndarray
    """Of every n-gram of every kind for every class: int8, times its scale."""
    scale_K: np.ndarray
    bias_C: np.ndarray

    @classmethod
    def of(cls, ngrams: Sequence[Ngrams], weights_KC: np.ndarray, bias_C: np.ndarray) -> "LinearModel":
        """Rounded to eight bits, each n-gram with a scale of its own."""
        scale_K = np.maximum(np.abs(weights_KC).max(axis=1), 1e-12).astype(np.float32) / 127
        narrow_KC = np.round(weights_KC / scale_K[:, None]).astype(np.int8)
        return cls(ngrams, narrow_KC, scale_K, bias_C.astype(np.float32))

    def log_chances(self, texts: Sequence[str], seconds: Sequence[str] | None) -> Floats:
        """[N, C]."""
        found = np.zeros((len(texts), len(self.bias_C)), dtype=np.float32)
        for first in range(0, len(texts), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            found[part] = self._log_chances(texts[part], None if seconds is None else seconds[part])
        return found

    def _log_chances(self, texts: Sequence[str], seconds: Sequence[str] | None) -> Floats:
        logits_NC = np.tile(self.bias_C, (len(texts), 1))
        before = 0
        for known in self.ngrams:
            rows = known.weigh(counted(texts, seconds, known.kind))
            stop = before + len(known)
            logits_NC += _product(rows, self.weights_KC[before:stop], self.scale_K[before:stop])
            before = stop
        shifted_NC = logits_NC - logits_NC.max(axis=1, keepdims=True)
        result: Floats = shifted_NC - np.log(np.exp(shifted_NC).sum(axis=1, keepdims=True))
        return result

    def packed(self) -> bytes:
        """The content of linear.safetensors."""
        arrays = {"weights": self.weights_KC, "scale": self.scale_K, "bias": self.bias_C}
        for known in self.ngrams:
            arrays |= {f"{known.kind}.keys": known.keys, f"{known.kind}.rarity": known.rarity}
        return save_arrays({name: np.ascontiguousarray(array) for name, array in arrays.items()})

    @classmethod
    def read(cls, folder: ModelFolder, classes: int) -> "LinearModel":
        """From a model folder; nothing in the file is believed before it is checked."""
        content, file = folder.content(LINEAR, LARGEST_LINEAR), folder.path / LINEAR
        try:
            arrays = load_arrays(content)
        except (SafetensorError, ValueError, KeyError, TypeError, OverflowError, AttributeError) as error:
            raise UserError(f"{file}: cannot be read: {str(error)[:200]}") from None
        kinds = [kind for kind in KINDS if f"{kind}.keys" in arrays]
        wanted = {"weights": np.int8, "scale": np.float32, "bias": np.float32}
        wanted |= {f"{kind}.keys": np.uint32 for kind in kinds} | {f"{kind}.rarity": np.float32 for kind in kinds}
        found = {name: array.dtype.type for name, array in arrays.items()}
        if found != wanted:
            wrong = min(str(name) for name, _ in found.items() ^ wanted.items())
            raise UserError(f"{file}: {wrong} is missing, unknown or of another type")
        rows = {kind: len(arrays[f"{kind}.keys"]) for kind in kinds}
        whole = sum(rows.values())
        shapes = {"weights": (whole, classes), "scale": (whole,), "bias": (classes,)}
        shapes |= {f"{kind}.{part}": (count,) for kind, count in rows.items() for part in ("keys", "rarity")}
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise UserError(f"{file}: {name} is {arrays[name].shape}, not {shape}")
            if arrays[name].dtype == np.float32 and not np.isfinite(arrays[name]).all():
                raise UserError(f"{file}: {name} holds NaN or infinite numbers")
        if any((np.diff(arrays[f"{kind}.keys"].astype(np.int64)) <= 0).any() for kind in kinds):
            raise UserError(f"{file}: the n-grams are not in rising order")
        ngrams = [Ngrams(kind, arrays[f"{kind}.keys"], arrays[f"{kind}.rarity"]) for kind in kinds]
        return cls(ngrams, arrays["weights"], arrays["scale"], arrays["bias"])


def _product(rows: Sparse, weights_KC: np.ndarray, scale_K: np.ndarray) -> np.ndarray:
    """[N, C]: rows times weights."""
    result = np.zeros((len(rows.ends), weights_KC.shape[1]), dtype=np.float32)
    for row, (start, stop) in enumerate(zip(rows.starts.tolist(), rows.ends.tolist(), strict=True)):
        places = rows.places[start:stop]
        result[row] = (rows.values[start:stop] * scale_K[places]) @ weights_KC[places].astype(np.float32)
    return result


@dataclass(frozen=True)
class Probabilities:
    """The encoder's logits -> log-probabilities to tell."""

    settings: MixtureSettings = field(default_factory=MixtureSettings)
    linear: LinearModel | None = None

    @classmethod
    def open(cls, folder: ModelFolder, classes: int) -> "Probabilities":
        """Of a model folder; folders of earlier versions have none."""
        settings = MixtureSettings.read(folder.table("probabilities"), where=folder.where)
        return cls(settings, LinearModel.read(folder, classes) if settings.linear else None)

    def logits(self, logits_NC: Floats, texts: Sequence[str], seconds: Sequence[str] | None) -> Floats:
        """What softmax is taken of."""
        mixed: Floats = logits_NC * np.float32(self.settings.encoder)
        if self.linear is not None and len(texts):
            mixed = mixed + np.float32(self.settings.linear) * self.linear.log_chances(texts, seconds)
        return mixed
