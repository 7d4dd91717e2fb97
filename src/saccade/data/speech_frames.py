"""Recordings as normalised log-mel frames, in arrays that are kept; the changed copies of training ones."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from pydantic import Field

from saccade.config import Record
from saccade.data.sound_augment import change_speed, through_telephone, with_noise, wordless
from saccade.data.speech_sets import Told, Utterance
from saccade.sources.resample import resampled
from saccade.sources.source import padded
from saccade.sources.spectrogram import log_mel, normalised

Arrays = dict[str, np.ndarray]


class SoundAugmentConfig(Record):
    """How training recordings are changed."""

    speeds: tuple[float, ...] = Field((0.9, 1.0, 1.1), min_length=1, max_length=9)
    """Each recording is trained on at every one of these speeds."""
    noise: float = Field(0.0, ge=0, le=1)
    """Share of them that noise is added to."""
    telephone: float = Field(0.0, ge=0, le=1)
    """Share of them that is cut to what 8 kHz can hold."""
    wordless: int = Field(0, ge=0, le=100_000)
    """Recordings of silence, noise and chords, without a text."""
    bands: int = Field(2, ge=0, le=20)
    """Bands of frequencies that are left out, drawn anew each time (SpecAugment)."""
    gaps: int = Field(3, ge=0, le=20)
    """Moments that are left out."""


@dataclass(frozen=True)
class SpokenFrames:
    """Frames of many recordings one after the other, and their texts."""

    frames_NF: np.ndarray = field(repr=False)
    """float16"""
    lengths: np.ndarray = field(repr=False)
    texts: Sequence[str] = field(repr=False)

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def of(cls, parts: Sequence[tuple[np.ndarray, str]]) -> "SpokenFrames":
        lengths = np.array([len(frames) for frames, _ in parts], dtype=np.int64)
        frames_NF = np.concatenate([frames.astype(np.float16) for frames, _ in parts])
        return cls(frames_NF, lengths, [text for _, text in parts])

    @classmethod
    def unpacked(cls, arrays: Arrays, name: str) -> "SpokenFrames":
        return cls(arrays[name], arrays[f"{name}_lengths"], arrays[f"{name}_texts"].tolist())

    def packed(self, name: str) -> Arrays:
        return {name: self.frames_NF, f"{name}_lengths": self.lengths, f"{name}_texts": np.array(list(self.texts))}

    def take(self, numbers: Sequence[int] | np.ndarray) -> list[np.ndarray]:
        """The frames [T, mels] of some, float32."""
        starts = np.concatenate([[0], np.cumsum(self.lengths)])
        return [np.asarray(self.frames_NF[starts[n] : starts[n + 1]], dtype=np.float32) for n in numbers]


def frames_of(samples: np.ndarray, rate: int, wanted: int, mels: int) -> np.ndarray:
    """As a model hears it."""
    return normalised(log_mel(resampled(samples, rate, wanted), wanted, mels))


def plain_frames(spoken: Sequence[Utterance], rate: int, mels: int) -> SpokenFrames:
    """As they are."""
    return SpokenFrames.of([(frames_of(one.samples, one.rate, rate, mels), one.text) for one in spoken])


def changed_frames(
    spoken: Sequence[Utterance], rate: int, mels: int, config: SoundAugmentConfig, seed: int, report: Told
) -> SpokenFrames:
    """Each at every speed, some with noise or through a telephone; and recordings of nothing."""
    found = []
    for number, one in enumerate(spoken):
        random = np.random.default_rng([seed, number])
        whole = resampled(one.samples, one.rate, rate)
        for speed in config.speeds:
            samples = change_speed(whole, speed)
            if random.random() < config.telephone:
                samples = through_telephone(samples, rate)
            if random.random() < config.noise:
                samples = with_noise(samples, random)
            found.append((normalised(log_mel(samples, rate, mels)).astype(np.float16), one.text))
        report(number + 1, len(spoken))
    random = np.random.default_rng([seed, len(spoken)])
    found += [(normalised(log_mel(wordless(rate, random), rate, mels)), "") for _ in range(config.wordless)]
    return SpokenFrames.of(found)


def side_by_side(frames: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray | None]:
    """[M, T, mels], zeros after the shorter ones, and which frames are real."""
    return padded(frames, axes=1)
