"""Sounds changed for training: faster and slower, with noise, through a telephone, with bands and moments left out.
Pure functions; the random numbers are the caller's."""

import numpy as np

from saccade.sources.resample import resampled

TELEPHONE = 8_000
"""Samples in a second."""


def change_speed(samples: np.ndarray, factor: float) -> np.ndarray:
    """So many times as fast, and as much higher (Ko et al. 2015)."""
    return resampled(samples, factor, 1.0)


def through_telephone(samples: np.ndarray, rate: int) -> np.ndarray:
    """What is left of it at 8 kHz, at its own rate."""
    return resampled(resampled(samples, rate, TELEPHONE), TELEPHONE, rate)[: len(samples)]


def noise(count: int, random: np.random.Generator) -> np.ndarray:
    """From white, which hisses, to brown, which rumbles: power falls with a random power of the frequency."""
    spectrum = np.fft.rfft(random.standard_normal(count))
    frequencies = np.maximum(np.arange(len(spectrum)), 1.0)
    coloured = np.fft.irfft(spectrum * frequencies ** -random.uniform(0, 1), count)
    return np.asarray(coloured / max(float(np.abs(coloured).max()), 1e-9), dtype=np.float32)


def with_noise(samples: np.ndarray, random: np.random.Generator, decibels: tuple[float, float] = (8, 35)) -> np.ndarray:
    """So many decibels louder than the noise, drawn between the two."""
    added = noise(len(samples), random)
    power, theirs = (float(np.square(one).mean()) for one in (samples, added))
    scale = np.sqrt(power / max(theirs, 1e-12) * 10 ** (-random.uniform(*decibels) / 10))
    return samples + np.float32(scale) * added


def wordless(rate: int, random: np.random.Generator) -> np.ndarray:
    """Silence, noise or chords, half a second to four: what no text belongs to."""
    count = int(rate * random.uniform(0.5, 4))
    kind = random.integers(4)
    if kind == 0:
        return np.zeros(count, dtype=np.float32)
    quiet = np.float32(10 ** random.uniform(-4, -0.5)) * noise(count, random)
    if kind == 1:
        return quiet
    moments, sound = np.arange(count) / rate, quiet.copy()
    beat = max(1, int(rate * random.uniform(0.15, 0.8)))
    for first in range(0, count, beat):
        part = slice(first, first + beat)
        fade = np.exp(-3 * (moments[part] - moments[first]))
        for pitch in 110 * 2 ** (random.integers(0, 36, size=int(random.integers(1, 5))) / 12):
            overtones = sum(np.sin(2 * np.pi * pitch * k * moments[part]) / k for k in range(1, 5))
            sound[part] += (0.1 * fade * overtones).astype(np.float32)
    return sound


def masked(
    frames_TF: np.ndarray, random: np.random.Generator, *, bands: int = 2, gaps: int = 3, share: float = 0.05
) -> np.ndarray:
    """SpecAugment (Park et al. 2019): some bands of up to a quarter of the mel scale, and some gaps of up to a share of
    the time, set to 0, which is the mean."""
    found = frames_TF.copy()
    length, mels = found.shape
    for _ in range(bands):
        width = int(random.integers(0, mels // 4 + 1))
        low = int(random.integers(0, mels - width + 1))
        found[:, low : low + width] = 0
    for _ in range(gaps):
        width = int(random.integers(0, int(share * length) + 2))
        first = int(random.integers(0, max(1, length - width + 1)))
        found[first : first + width] = 0
    return found
