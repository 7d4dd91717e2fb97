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
FINEST = 1000
"""Rates without a small common divisor are taken by the nearest fraction: off by less than a millionth."""
FRAME = 256
"""Samples that one row of the product steps over, at least."""
ROWS_AT_ONCE = 4096


def resampled(samples: np.ndarray, rate: float, wanted: float) -> np.ndarray:
    """float32 samples at the rate `wanted`; silence is assumed before and after them."""
    ratio = Fraction(wanted / rate).limit_denominator(FINEST)
    if ratio == 1 or not len(samples):
        return samples.astype(np.float32, copy=False)
    if ratio == 0:
        return np.zeros(0, dtype=np.float32)
    times = max(1, -(-FRAME // ratio.denominator))
    up, down = ratio.numerator * times, ratio.denominator * times
    matrix, reach = _matrix(up, down)
    count = -(-len(samples) * up // down)
    rows = -(-count // up)
    padded = np.zeros(rows * down + 2 * reach, dtype=np.float32)
    padded[reach : reach + len(samples)] = samples
    frames = sliding_window_view(padded, len(matrix))[::down]
    found = np.empty((rows, up), dtype=np.float32)
    for first in range(0, rows, ROWS_AT_ONCE):
        found[first : first + ROWS_AT_ONCE] = frames[first : first + ROWS_AT_ONCE] @ matrix
    return found.reshape(-1)[:count]


@lru_cache(maxsize=8)
def _matrix(up: int, down: int) -> tuple[np.ndarray, int]:
    """From the samples around `down` steps to `up` outputs; and how many samples around them it reaches."""
    passes = ROLLOFF * min(1.0, up / down)
    reach = int(np.ceil(CROSSINGS / passes))
    place = np.arange(down + 2 * reach)[:, None] - reach
    away = np.arange(up)[None] * (down / up) - place
    window = np.kaiser(2001, KAISER)
    shape = np.interp(away / reach, np.linspace(-1, 1, 2001), window, left=0, right=0)
    return (passes * np.sinc(passes * away) * shape).astype(np.float32), reach
