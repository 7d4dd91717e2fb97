"""A sound as input: a file, its bytes, or samples with their rate -> one channel of samples at one rate, and sounds
side by side."""

import io
import wave
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from saccade.errors import UserError, WrongUse
from saccade.sources.decoding import check_header, decode
from saccade.sources.files import file_content, within
from saccade.sources.resample import resampled
from saccade.sources.source import Collated, Source, padded, shown

if TYPE_CHECKING:
    from saccade.axes import Time

BYTES_PER_SECOND = 4 * 2 * 96_000
"""Of the richest recording that is read to its full length: 32 bits, 2 channels, 96 kHz."""
LARGEST_FILE = 512 * 2**20


@dataclass(frozen=True)
class SoundItem:
    """A sound that was read."""

    name: str
    """Of its file; "sound" where it has none."""
    samples: np.ndarray = field(repr=False)
    """float32 from -1 to 1, one channel."""
    rate: int
    """Samples in a second."""

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate


@dataclass(frozen=True)
class SoundSource(Source[SoundItem, Collated]):
    """A recording, its channels mixed, brought to one rate."""

    rate: int | None = 16_000
    """Samples in a second that the model was made for: others are resampled; None leaves them as they are."""
    seconds: float = 1_800.0
    """The longest sound, checked before it is decoded."""
    hop: float = 0.01
    """Seconds of one position that a model looks at."""

    kind: ClassVar[str] = "sound"
    takes: ClassVar[str] = "a sound is a file's name, its bytes, or a tuple of an array of samples and its rate"
    suffixes: ClassVar[tuple[str, ...]] = (".wav", ".wave", ".flac", ".ogg", ".oga", ".opus", ".mp3")

    @property
    def largest_file(self) -> int:
        return min(LARGEST_FILE, 4096 + int(self.seconds * BYTES_PER_SECOND))

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
        plain = self._plain_wav(content, name)
        if plain is None:
            found = decode(content, name, self.seconds)
            plain = found.samples, found.rate
        return self._item(*plain, name)

    def _plain_wav(self, content: bytes, name: str) -> tuple[np.ndarray, int] | None:
        """A WAV of plain samples (PCM) needs no decoder; None for everything else."""
        try:
            with wave.open(io.BytesIO(content)) as opened:
                channels, width, rate = opened.getnchannels(), opened.getsampwidth(), opened.getframerate()
                self._check(channels, rate, opened.getnframes(), name)
                data = opened.readframes(opened.getnframes())
        except (wave.Error, EOFError, ZeroDivisionError, ValueError, RuntimeError):
            return None
        if width not in (1, 2, 3, 4):
            return None
        whole = len(data) // (width * channels) * width * channels  # a file that is cut off may end within a sample
        return _as_floats(data[:whole], width).reshape(-1, channels).mean(axis=1, dtype=np.float32), rate

    def _from_samples(self, samples: np.ndarray, rate: int) -> SoundItem:
        if samples.ndim not in (1, 2) or not np.issubdtype(samples.dtype, np.floating):
            raise WrongUse(
                f"samples are floating point, [S] or [S, channels], not {samples.dtype} {list(samples.shape)}"
            )
        mixed = samples if samples.ndim == 1 else samples.mean(axis=1)
        if mixed.size and (not bool(np.isfinite(mixed).all()) or np.abs(mixed).max() > 1):
            raise WrongUse("samples go from -1 to 1")
        self._check(1, int(rate), len(mixed), "sound")
        return self._item(mixed.astype(np.float32), int(rate), "sound")

    def _item(self, samples: np.ndarray, rate: int, name: str) -> SoundItem:
        if not len(samples):
            raise UserError(f"{name}: no samples in it; there is nothing to hear")
        if not bool(np.isfinite(samples).all()):
            wrong = int(np.count_nonzero(~np.isfinite(samples)))
            raise UserError(f"{name}: {wrong:,} of {len(samples):,} samples are no numbers (NaN or infinite)")
        loudest = float(np.abs(samples).max())
        if loudest > 1:  # floating-point files may hold any numbers
            samples = samples / np.float32(loudest)
        wanted = rate if self.rate is None else self.rate
        return SoundItem(name, resampled(samples, rate, wanted), wanted)

    def _check(self, channels: int, rate: int, samples: int, name: str) -> None:
        try:
            check_header(channels, rate, samples, self.seconds)
        except UserError as error:
            raise UserError(f"{name}: {error}") from None


def _as_floats(data: bytes, width: int) -> np.ndarray:
    """Samples from -1 to 1. WAV stores 8 bits without a sign and more with one, the lowest byte first."""
    if width == 1:
        return (np.frombuffer(data, np.uint8).astype(np.float32) - 128) / 128
    if width == 3:  # as the three upper bytes of four
        bytes_S4 = np.zeros((len(data) // 3, 4), dtype=np.uint8)
        bytes_S4[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        data, width = bytes_S4.tobytes(), 4
    whole: np.ndarray = np.frombuffer(data, "<i2" if width == 2 else "<i4").astype(np.float32)
    return whole / np.float32(2.0 ** (8 * width - 1))


def _is_samples(raw: Any) -> bool:
    """(array, rate)"""
    pair = isinstance(raw, tuple) and len(raw) == 2 and isinstance(raw[0], np.ndarray)
    return pair and isinstance(raw[1], int | np.integer) and not isinstance(raw[1], bool)
