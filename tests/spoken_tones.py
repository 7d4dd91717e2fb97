"""Tones as a language of its own: each of three words is a tone, so that a listener can be trained in seconds."""

from pathlib import Path

import numpy as np

WORDS = {"LOW": 400.0, "MID": 1_000.0, "TOP": 2_200.0}
RATE = 8_000


def tones(words: list[str], random: np.random.Generator) -> np.ndarray:
    """A fifth of a second for each word, with quiet around."""
    pieces = [quiet(0.1, random)]
    for word in words:
        moments = np.arange(int(0.25 * RATE)) / RATE
        pitch = WORDS[word] * random.uniform(0.97, 1.03)
        pieces += [0.4 * np.sin(2 * np.pi * pitch * moments) * np.hanning(len(moments)), quiet(0.1, random)]
    return np.concatenate(pieces).astype(np.float32)


def quiet(seconds: float, random: np.random.Generator) -> np.ndarray:
    return 1e-3 * random.standard_normal(int(seconds * RATE))


def write_clips(folder: Path, count: int, *, seed: int = 0) -> Path:
    """Files of one to three words and their table; one is missing and one is no sound."""
    import soundfile

    random, rows = np.random.default_rng(seed), ["file\ttext"]
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        words = random.choice(list(WORDS), size=int(random.integers(1, 4))).tolist()
        name = f"clip{number}.{('wav', 'flac')[number % 2]}"
        soundfile.write(folder / name, tones(words, random), RATE)
        rows.append(f"{name}\t{' '.join(words)}")
    (folder / "text.wav").write_text("no sound")
    table = folder / "clips.tsv"
    table.write_text("\n".join([*rows, "missing.wav\tLOW", "text.wav\tTOP", ""]), encoding="utf-8")
    return table
