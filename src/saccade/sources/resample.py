"""Another rate for samples, by a windowed sinc (polyphase): one product of matrices for many outputs at a time."""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

CROSSINGS = 24
"""Zero crossings of the sinc on each side of its middle."""
ROLLOFF = 0.94
"""Share of the lower Nyquist frequency that passes."""
KAISER = 9.0
"""Shape of the window: what does not pass is about 90 dB weaker."""
LARGEST_TERM = 1000
"""Rates whose ratio has larger terms have no table of all their filters: that would be too large."""
PHASES = 512
"""Filters between two samples, for such rates; between two of them, the nearest is taken."""
FRAME = 256
"""Samples that one row of the product steps over, at least."""
ROWS_AT_ONCE = 4096


def resampled(samples: np.ndarray, rate: float, wanted: float) -> np.ndarray:
    """float32 samples at the rate `wanted`; silence is assumed before and after them."""
    ratio = Fraction(wanted).limit_denominator(1000) / Fraction(rate).limit_denominator(1000)
    samples = samples.astype(np.float32, copy=False)
    if ratio == 1 or not len(samples):
        return samples
    count = int(-(-len(samples) * ratio // 1))
    if max(ratio.numerator, ratio.denominator) > LARGEST_TERM:
        return _by_phases(samples, float(ratio), count)
    times = max(1, -(-FRAME // ratio.denominator))
    up, down = ratio.numerator * times, ratio.denominator * times
    matrix, reach = _matrix(up, down)
    rows = -(-count // up)
    padded = np.zeros(rows * down + 2 * reach, dtype=np.float32)
    padded[reach : reach + len(samples)] = samples
    frames = sliding_window_view(padded, len(matrix))[::down]
    found = np.empty((rows, up), dtype=np.float32)
    for first in range(0, rows, ROWS_AT_ONCE):
        found[first : first + ROWS_AT_ONCE] = frames[first : first + ROWS_AT_ONCE] @ matrix
    return found.reshape(-1)[:count]


def _by_phases(samples: np.ndarray, ratio: float, count: int) -> np.ndarray:
    """Output by output, with the filter nearest to where it stands between two samples."""
    passes, reach = _pass_band(ratio)
    filters = _filter(np.arange(2 * reach)[:, None] - reach + 1 - np.arange(PHASES + 1)[None] / PHASES, passes, reach)
    padded = np.pad(samples, reach)
    windows = sliding_window_view(padded, 2 * reach)
    found = np.empty(count, dtype=np.float32)
    for first in range(0, count, ROWS_AT_ONCE):
        at = np.arange(first, min(first + ROWS_AT_ONCE, count)) / ratio
        below = np.floor(at).astype(np.int64)
        phase = np.rint((at - below) * PHASES).astype(np.int64)
        found[first : first + len(at)] = np.einsum("nk,kn->n", windows[below + 1], filters[:, phase])
    return found


@lru_cache(maxsize=8)
def _matrix(up: int, down: int) -> tuple[np.ndarray, int]:
    """From the samples around `down` steps to `up` outputs; and how many samples around them it reaches."""
    passes, reach = _pass_band(up / down)
    place = np.arange(down + 2 * reach)[:, None] - reach
    return _filter(np.arange(up)[None] * (down / up) - place, passes, reach), reach


def _pass_band(ratio: float) -> tuple[float, int]:
    """Share of the input's Nyquist frequency that passes, and how far a filter reaches."""
    passes = ROLLOFF * min(1.0, ratio)
    return passes, int(np.ceil(CROSSINGS / passes))


def _filter(away: np.ndarray, passes: float, reach: int) -> np.ndarray:
    """The windowed sinc, so many samples away from its middle."""
    shape = np.interp(away / reach, np.linspace(-1, 1, 4001), np.kaiser(4001, KAISER), left=0, right=0)
    return (passes * np.sinc(passes * away) * shape).astype(np.float32)
