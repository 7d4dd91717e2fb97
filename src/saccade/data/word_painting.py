"""Colours of drawn words: grounds that are plain, lit from a side or like photographs; ink, outlines, shadows, depth;
dark on light and light on dark."""

from functools import cache

import numpy as np

Random = np.random.Generator
LEAST_CONTRAST = 30
"""Between ink and ground, of 255."""
FAINT = 0.12
"""Share of words with less than twice that contrast, or little more."""
GROUNDS, GROUND_HW = 64, (176, 768)
"""Ready grounds, of which parts are taken, and their size in pixels: one is larger than any word."""


def painted(share_HW: np.ndarray, random: Random) -> np.ndarray:
    """Grey values from 0 to 255; `share_HW` is how much of each pixel is ink."""
    ground, ink = _greys(random)
    apart = abs(ink - ground)
    strength = random.random() ** 2 * 0.5 * apart
    ground_HW = ground + strength * _texture(share_HW.shape, random)
    effect = random.random()
    if effect < 0.14:
        ground_HW = _shadowed(ground_HW, share_HW, random)
    elif effect < 0.26:
        ground_HW = _outlined(ground_HW, share_HW, ink, random)
    elif effect < 0.29:  # letters that are outlines
        share_HW = np.clip(_wider(share_HW, 3) - share_HW, 0, 1)
    elif effect < 0.33:
        ground_HW = _deep(ground_HW, share_HW, ink, random)
    ink_HW = np.full_like(share_HW, ink)
    if random.random() < 0.3:
        ink_HW = ink_HW + random.uniform(0, 0.35) * apart * _texture(share_HW.shape, random)
    found: np.ndarray = np.clip(ground_HW + share_HW * (ink_HW - ground_HW), 0, 255)
    return found


def _greys(random: Random) -> tuple[float, float]:
    """Of the ground and of the ink, either the darker one."""
    apart = random.uniform(LEAST_CONTRAST, 80) if random.random() < FAINT else random.uniform(70, 255)
    darker = random.uniform(0, 255 - apart)
    greys = (float(darker), float(darker + apart))
    return greys if random.random() < 0.5 else (greys[1], greys[0])


def _shadowed(ground_HW: np.ndarray, share_HW: np.ndarray, random: Random) -> np.ndarray:
    """A shadow to one side, of any grey."""
    down, across = random.integers(-3, 4, 2)
    shadow_HW = np.roll(share_HW, (int(down), int(across)), axis=(0, 1))
    found: np.ndarray = ground_HW + shadow_HW * (random.uniform(0, 255) - ground_HW) * random.uniform(0.3, 0.9)
    return found


def _outlined(ground_HW: np.ndarray, share_HW: np.ndarray, ink: float, random: Random) -> np.ndarray:
    """A line of another grey around every letter."""
    grey = ink + random.uniform(60, 200) * (1 if ink < 128 else -1)
    found: np.ndarray = ground_HW + _wider(share_HW, int(random.choice([3, 5]))) * (grey - ground_HW)
    return found


def _deep(ground_HW: np.ndarray, share_HW: np.ndarray, ink: float, random: Random) -> np.ndarray:
    """Letters that stand out, seen from a side: shadow after shadow."""
    down, across = (int(step) for step in random.choice([-1, 1], 2))
    grey = (ink + ground_HW.mean()) / 2 + random.uniform(-50, 50)
    solid_HW = share_HW
    for step in range(1, int(random.integers(3, 7))):
        solid_HW = np.maximum(solid_HW, np.roll(share_HW, (step * down, step * across), axis=(0, 1)))
    found: np.ndarray = ground_HW + solid_HW * (grey - ground_HW)
    return found


def _wider(share_HW: np.ndarray, size: int) -> np.ndarray:
    from PIL import Image, ImageFilter

    image = Image.fromarray((share_HW * 255).astype(np.uint8)).filter(ImageFilter.MaxFilter(size))
    return np.asarray(image, dtype=np.float32) / np.float32(255)


def _texture(shape: tuple[int, ...], random: Random) -> np.ndarray:
    """From -1 to 1: nothing, a slope of light, or a part of a ready ground."""
    height, width = shape
    kind = random.random()
    if kind < 0.3:
        return np.zeros((height, width), np.float32)
    if kind < 0.5:
        down, across = random.uniform(-1, 1, 2)
        slope = down * np.linspace(-1, 1, height)[:, None] + across * np.linspace(-1, 1, width)
        return np.asarray(np.clip(slope, -1, 1), dtype=np.float32)
    ground_HW = _ground(int(random.integers(GROUNDS)))
    rows = int(random.integers(max(1, GROUND_HW[0] - height))) + np.arange(height)
    columns = int(random.integers(max(1, GROUND_HW[1] - width))) + np.arange(width)
    part: np.ndarray = ground_HW[np.ix_(rows % GROUND_HW[0], columns % GROUND_HW[1])]
    return part[::-1] if random.random() < 0.5 else part


@cache
def _ground(number: int) -> np.ndarray:
    """Something like a part of a photograph: rough or cloudy, with edges, stripes or things in it; from -1 to 1."""
    random = np.random.default_rng([20, number])
    found = _clouds(random, float(random.uniform(0.7, 2.2)))
    for part, often in ((_things, 0.5), (_stripes, 0.35)):
        if random.random() < often:
            found = found * random.uniform(0.1, 0.6) + part(random)
    found = (found - found.mean()) / max(float(found.std()), 1e-6)
    return np.asarray(np.clip(found / 2, -1, 1), dtype=np.float32)


def _clouds(random: Random, power: float) -> np.ndarray:
    """Noise whose amplitude falls with this power of the frequency, as that of photographs does with the first
    (Field 1987)."""
    height, width = GROUND_HW
    rate = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    rate[0, 0] = 1
    noise = np.fft.rfft2(random.standard_normal(GROUND_HW)) / rate**power
    found = np.fft.irfft2(noise, GROUND_HW)
    return np.asarray(found / found.std())


def _things(random: Random) -> np.ndarray:
    """Shapes before shapes, each of one grey."""
    from PIL import Image, ImageDraw, ImageFilter

    image = Image.new("L", GROUND_HW[::-1], int(random.integers(256)))
    pen = ImageDraw.Draw(image)
    for _ in range(int(random.integers(10, 60))):
        x, y = random.uniform(-50, GROUND_HW[1]), random.uniform(-50, GROUND_HW[0])
        wide, tall, grey = *random.uniform(8, 160, 2), int(random.integers(256))
        kind = random.random()
        if kind < 0.4:
            pen.rectangle((x, y, x + wide, y + tall), fill=grey)
        elif kind < 0.7:
            pen.ellipse((x, y, x + wide, y + tall), fill=grey)
        else:
            ends = random.uniform(-160, 160, 4)
            pen.line((x, y, x + ends[0], y + ends[1], x + ends[2], y + ends[3]), grey, int(random.integers(1, 9)))
    soft = image.filter(ImageFilter.GaussianBlur(float(random.uniform(0.3, 2.5))))
    return (np.asarray(soft, dtype=np.float64) - 128) / 64


def _stripes(random: Random) -> np.ndarray:
    """Boards, blinds, bricks from afar: stripes in any direction."""
    angle, length = random.uniform(0, np.pi), random.uniform(5, 60)
    rows, columns = np.arange(GROUND_HW[0])[:, None], np.arange(GROUND_HW[1])[None]
    wave = np.sin(2 * np.pi * (rows * np.cos(angle) + columns * np.sin(angle)) / length)
    found: np.ndarray = np.tanh(wave * random.uniform(0.5, 6))
    return found
