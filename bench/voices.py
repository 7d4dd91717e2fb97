"""A listener on recordings from outside its data: voices of espeak-ng and flite that say digits and spell words, at
four rates, in stereo, as MP3; and noise, music and silence, in which nothing is said.

    apt-get install espeak-ng flite
    python -m bench.voices MODEL
"""

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from saccade.data.sound_augment import noise, wordless
from saccade.data.speech_sets import DIGITS
from saccade.errors import UserError
from saccade.evaluate.speech import word_errors
from saccade.pipelines.load import load
from saccade.sources.resample import resampled
from saccade.sources.sound import SoundSource

ESPEAK = ("en-us", "en-gb", "en-gb-scotland", "en-us+f3", "en-us+m3", "en-gb+f5")
FLITE = ("kal16", "awb", "rms", "slt")
EACH = 12
"""Texts for every voice: half of them digits, half spelled words."""
WORDS = (
    "HARVEY",
    "JONES",
    "PITTSBURGH",
    "MAPLE",
    "QUEEN",
    "ZEBRA",
    "OXFORD",
    "WINDY",
    "BLACK",
    "FIG",
    "CUPS",
    "VIOLET",
)
NOTHING = 20
"""Recordings of each kind in which nothing is said."""
Samples = tuple[np.ndarray, int]


def texts(random: np.random.Generator) -> Iterator[str]:
    for number in range(EACH):
        if number % 2:
            yield " ".join(str(random.choice(WORDS)))
        else:
            yield " ".join(random.choice(DIGITS, size=int(random.integers(1, 7))).tolist())


def speakers() -> dict[str, Callable[[str, Path], list[str]]]:
    """Voices that are installed, and the command that speaks a text into a file."""
    found: dict[str, Callable[[str, Path], list[str]]] = {}

    def espeak(voice: str) -> Callable[[str, Path], list[str]]:
        return lambda text, file: ["espeak-ng", "-v", voice, "-s", "130", "-w", str(file), text]

    def flite(voice: str) -> Callable[[str, Path], list[str]]:
        return lambda text, file: ["flite", "-voice", voice, "-t", text, "-o", str(file)]

    if shutil.which("espeak-ng"):
        found |= {f"espeak-ng {voice}": espeak(voice) for voice in ESPEAK}
    if shutil.which("flite"):
        found |= {f"flite {voice}": flite(voice) for voice in FLITE}
    return found


def spoken(command: list[str], file: Path) -> Samples | None:
    """None where the voice is not there."""
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode or not file.exists():
        return None
    item = SoundSource(rate=None).read(file)
    return item.samples, item.rate


def forms(samples: Samples) -> dict[str, Any]:
    """The same recording as different machines would hand it over."""
    import soundfile

    def written(rate: int, channels: int, kind: str) -> bytes:
        one = resampled(*samples, rate)
        content = io.BytesIO()
        soundfile.write(content, np.stack([one] * channels, axis=1).clip(-1, 1), rate, format=kind)
        return content.getvalue()

    return {
        "8 kHz": written(8_000, 1, "WAV"),
        "16 kHz": written(16_000, 1, "FLAC"),
        "44.1 kHz, stereo": written(44_100, 2, "WAV"),
        "48 kHz, MP3": written(48_000, 2, "MP3"),
    }


def music(random: np.random.Generator, rate: int) -> np.ndarray:
    """Chords only."""
    while True:
        sound = wordless(rate, random)
        if np.abs(sound).max() > 0.2 and len(sound) > rate:
            return sound / np.abs(sound).max() * np.float32(0.5)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    given = parser.parse_args()
    transcribe, voices = load(given.model), speakers()
    if not voices:
        print("bench.voices: no voice here: apt-get install espeak-ng flite", file=sys.stderr)
        return 1
    by_form: dict[str, tuple[list[str], list[str]]] = {}
    with tempfile.TemporaryDirectory() as room:
        for number, (voice, command) in enumerate(voices.items()):
            right: list[str] = []
            heard: list[str] = []
            for text in texts(np.random.default_rng(number)):
                file = Path(room) / "said.wav"
                file.unlink(missing_ok=True)
                # A pause after each letter, as people spell.
                samples = spoken(command(text.replace(" ", ", ").lower(), file), file)
                if samples is None:
                    break
                for form, raw in forms(samples).items():
                    answer = transcribe.answer([raw], _request())[0]
                    said = "" if isinstance(answer, UserError) else answer.text
                    for texts_of, one in zip(by_form.setdefault(form, ([], [])), (text, said), strict=True):
                        texts_of.append(one)
                    right, heard = [*right, text], [*heard, said]
            print(word_errors(right, heard, voice) if right else f"{voice}: not installed", flush=True)
    for form, (right, heard) in by_form.items():
        print(word_errors(right, heard, form))
    random = np.random.default_rng(0)
    kinds: dict[str, Callable[[], np.ndarray]] = {
        "silence": lambda: np.zeros(int(16_000 * random.uniform(0.5, 5)), dtype=np.float32),
        "noise": lambda: (
            np.float32(10 ** random.uniform(-3, -0.3)) * noise(int(16_000 * random.uniform(0.5, 5)), random)
        ),
        "music": lambda: music(random, 16_000),
    }
    for kind, make in kinds.items():
        found = [transcribe((make(), 16_000)).text for _ in range(NOTHING)]
        silent = sum(not text for text in found)
        longest = max(found, key=len)
        print(f"{kind}: no text {silent} of {NOTHING}" + (f"; the longest: {longest[:60]!r}" if longest else ""))
    return 0


def _request() -> Any:
    from saccade.pipelines.pipeline import Request

    return Request()


if __name__ == "__main__":
    sys.exit(main())
