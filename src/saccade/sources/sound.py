"""A sound as input: a WAV file, its bytes, or samples with their rate -> one channel of samples, and sounds side by
side."""

import io
import wave
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from saccade.errors import UserError, WrongUse
from saccade.sources.files import file_content, within
from saccade.sources.source import Collated, Source, padded, shown

if TYPE_CHECKING:
    from saccade.axes import Time

BYTES_PER_SECOND = 4 * 8 * 192_000
"""Of the richest recording: 32 bits, 8 channels, 192 kHz."""


@dataclass(frozen=True)
class SoundItem:
    """A sound that was read."""

    name: str
    """Of its file; "sound" where it has none."""
    samples: np.ndarray = field(repr=False)
    """float32 from -1 to 1, one channel."""
    rate: int
    """Samples in a second."""


@dataclass(frozen=True)
class SoundSource(Source[SoundItem, Collated]):
    """A recording of one rate, its channels mixed."""

    rate: int | None = 16_000
    """Samples in a second that the model was made for; None reads any."""
    seconds: float = 60.0
    """The longest sound, checked before it is decoded."""
    hop: float = 0.01
    """Seconds of one position that a model looks at."""

    kind: ClassVar[str] = "sound"
    takes: ClassVar[str] = "a sound is a WAV file's name, its bytes, or a tuple of an array of samples and its rate"
    suffixes: ClassVar[tuple[str, ...]] = (".wav", ".wave")

    @property
    def largest_file(self) -> int:
        return int(self.seconds * BYTES_PER_SECOND)

    def is_one(self, raw: Any) -> bool:
        return isinstance(raw, str | Path | bytes) or _is_samples(raw)

    def read(self, raw: Any) -> SoundItem:
        if isinstance(raw, str | Path):
            return self._decoded(file_content(raw, self.largest_file), str(raw))
        if isinstance(raw, bytes):
            return self._decoded(within(raw, self.largest_file, "sound"), "sound")
        if _is_samples(raw):
            return self._from_samples(*raw)
        raise WrongUse(f"{self.takes}, not {shown(raw)}")

    def label(self, item: SoundItem) -> str:
        return item.name

    def size(self, item: SoundItem) -> int:
        return len(item.samples)

    def collate(self, items: Sequence[SoundItem]) -> Collated:
        """float32 samples [B, S], silence after the shorter ones, and which samples are of a sound."""
        return Collated(*padded([item.samples for item in items], axes=1))

    def labels(self, item: SoundItem) -> "Time":
        from saccade.axes import Time

        return Time(count=-(-len(item.samples) // max(1, round(self.hop * item.rate))), seconds=self.hop)

    def _decoded(self, content: bytes, name: str) -> SoundItem:
        try:
            with wave.open(io.BytesIO(content)) as opened:
                channels, width, rate = opened.getnchannels(), opened.getsampwidth(), opened.getframerate()
                self._check(opened.getnframes(), rate, name)
                data = opened.readframes(opened.getnframes())
        except (wave.Error, EOFError, ZeroDivisionError, ValueError, RuntimeError) as error:
            why = " ".join(str(error).split()) or "it is cut off"
            raise UserError(f"{name}: not a WAV file of plain samples (PCM): {why}") from None
        if width not in (1, 2, 3, 4):
            raise UserError(f"{name}: {8 * width} bits a sample; 8, 16, 24 or 32 can be read")
        whole = len(data) // (width * channels) * width * channels  # a file that is cut off may end within a sample
        samples_SC = _as_floats(data[:whole], width).reshape(-1, channels)
        if not len(samples_SC):
            raise UserError(f"{name}: no samples in it; there is nothing to hear")
        return SoundItem(name, samples_SC.mean(axis=1, dtype=np.float32), rate)

    def _from_samples(self, samples: np.ndarray, rate: int) -> SoundItem:
        if samples.ndim not in (1, 2) or not np.issubdtype(samples.dtype, np.floating):
            raise WrongUse(
                f"samples are floating point, [S] or [S, channels], not {samples.dtype} {list(samples.shape)}"
            )
        self._check(len(samples), int(rate), "sound")
        if not samples.size:
            raise UserError("no samples in it; there is nothing to hear")
        mixed = samples if samples.ndim == 1 else samples.mean(axis=1)
        if not bool(np.isfinite(mixed).all()) or np.abs(mixed).max() > 1:
            raise WrongUse("samples go from -1 to 1")
        return SoundItem("sound", mixed.astype(np.float32), int(rate))

    def _check(self, samples: int, rate: int, name: str) -> None:
        if rate < 1:
            raise UserError(f"{name}: {rate} samples a second")
        if self.rate is not None and rate != self.rate:
            raise UserError(f"{name}: {rate:,} samples a second; this model reads {self.rate:,}")
        if samples > self.seconds * rate:
            raise UserError(f"{name}: {samples / rate:.1f} seconds; at most {self.seconds:g} are read in one sound")


def _as_floats(data: bytes, width: int) -> np.ndarray:
    """Samples from -1 to 1. WAV stores 8 bits without a sign and more with one, the lowest byte first."""
    if width == 1:
        return (np.frombuffer(data, np.uint8).astype(np.float32) - 128) / 128
    if width == 3:  # as the three upper bytes of four
        bytes_S4 = np.zeros((len(data) // 3, 4), dtype=np.uint8)
        bytes_S4[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        data, width = bytes_S4.tobytes(), 4
    whole: np.ndarray = np.frombuffer(data, "<i2" if width == 2 else "<i4").astype(np.float64)
    return (whole / 2.0 ** (8 * width - 1)).astype(np.float32)


def _is_samples(raw: Any) -> bool:
    """(array, rate)"""
    pair = isinstance(raw, tuple) and len(raw) == 2 and isinstance(raw[0], np.ndarray)
    return pair and isinstance(raw[1], int | np.integer) and not isinstance(raw[1], bool)
