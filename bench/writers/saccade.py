"""Saccade: a model folder in the runtime that `saccade complete` uses."""

from pathlib import Path

import numpy as np

from bench.measuring import read_arguments
from bench.resident import resident
from bench.writers.contract import MARKS, SHAPES, Prompts, Shape, Write, measure_writer
from saccade import __version__
from saccade.folder import read_folder
from saccade.runtime.contract import How
from saccade.runtime.open import LanguageRuntime


def open_runtime(folder: Path, shape: Shape, how: How | None) -> LanguageRuntime:
    runtime = LanguageRuntime(shape.config, read_folder(folder / "saccade").tensors(shape.weights), how)
    _ = runtime.decoder  # weights are packed now
    return runtime


def writer(runtime: LanguageRuntime) -> Write:
    """Greedy, and the end mark is never written."""

    def write(prompts: Prompts, count: int) -> Prompts:
        decoder, tokens_BT = runtime.decoder, np.array(prompts)
        rows, length = tokens_BT.shape
        logits, state = decoder.extend(tokens_BT, np.full(rows, length), decoder.start(None, rows))
        logits_BV = logits[:, -1] if logits.ndim == 3 else logits
        written = []
        while True:
            logits_BV[:, MARKS.end] = -np.inf
            tokens_B = logits_BV.argmax(axis=-1)
            written.append(tokens_B)
            if len(written) == count:
                return [list(map(int, text)) for text in np.stack(written, axis=1)]
            logits_BV, state = decoder.step(tokens_B, state)

    return write


def main() -> None:
    given = read_arguments(SHAPES, "folder", "how")
    how: How = given.how
    before = resident()
    shape = SHAPES[given.size]
    runtime = open_runtime(Path(given.folder), shape, how)
    measure_writer(f"saccade {__version__}, {runtime.choice}", shape, writer(runtime), given.calls, before)


if __name__ == "__main__":
    main()
