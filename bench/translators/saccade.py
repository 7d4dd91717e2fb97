"""Saccade: the engine and the search that `saccade translate` uses."""

import numpy as np

from bench.translators.contract import SIZES, TARGET, Sentences, Translate, build_model, read_arguments, time_cells
from saccade import __version__
from saccade.decode import beam, greedy
from saccade.decode.engine import engine
from saccade.decode.packed import How
from saccade.decode.running import Running
from saccade.decode.search import SearchConfig, search
from saccade.tokens.marks import BEGIN, END, PAD


def forbid_end() -> None:
    """Saccade has no setting for a least length; the peers have, and theirs forbids the end mark in the same way."""
    never = (PAD, BEGIN, END)
    beam.NEVER_WRITTEN = never  # type: ignore[assignment,attr-defined]
    greedy.NEVER_WRITTEN = never  # type: ignore[assignment,attr-defined]


def translator(model: Running) -> Translate:
    def translate(sources: Sentences, width: int) -> Sentences:
        with model.at_work():
            found = search(
                model.decoder,
                model.read(np.array(sources), None),
                SearchConfig(beam=width),
                prefixes=[[]] * len(sources),
                limits=[TARGET] * len(sources),
                numbers=list(range(len(sources))),
            )
        return [hypotheses[0].tokens for hypotheses in found]

    return translate


def main() -> None:
    given = read_arguments("how")
    how: How = given.how
    forbid_end()
    size = SIZES[given.size]
    running = engine(build_model(size), how)
    time_cells(f"saccade {__version__}, {how}", size, translator(running), given.calls)


if __name__ == "__main__":
    main()
