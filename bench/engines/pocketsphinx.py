"""pocketsphinx with the model that it brings, or with the words of a language model in ARPA form:
`python -m bench.engines.pocketsphinx WORK.json --words FILE` (FILE may be `none`)."""

import argparse
from importlib.metadata import version
from pathlib import Path

import numpy as np

from bench.engines.recordings import Listener, run_listener
from saccade.sources.sound import SoundSource


def build(given: argparse.Namespace) -> Listener:
    from pocketsphinx import Decoder

    words = None if given.words == "none" else given.words
    decoder = Decoder(samprate=16_000, loglevel="FATAL", **({"lm": words} if words else {}))
    source = SoundSource()

    def hear(file: Path) -> str:
        samples = (source.read(file).samples * 32_767).astype(np.int16)
        decoder.start_utt()
        decoder.process_raw(samples.tobytes(), full_utt=True)
        decoder.end_utt()
        found = decoder.hyp()
        return "" if found is None else str(found.hypstr)

    known = "words of AN4" if words else "its own words"
    return Listener(f"pocketsphinx {version('pocketsphinx')}, {known}", hear)


if __name__ == "__main__":
    run_listener(build, "words")
