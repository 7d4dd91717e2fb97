"""Saccade: the runtime and the search that `saccade translate` uses."""

import numpy as np

from bench.translators.contract import (
    MARKS,
    SIZES,
    TARGET,
    Sentences,
    Translate,
    build_model,
    read_arguments,
    time_cells,
)
from saccade import __version__
from saccade.decode.row import RowRequest
from saccade.decode.search import SearchConfig, search
from saccade.models.answering import sequence_runtime
from saccade.pipelines.opening import SequenceModel
from saccade.runtime.contract import How
from saccade.tokens.marks import Marks


class EndlessMarks(Marks):
    """No search may write the end mark: Saccade has no setting for a least length; the peers have, and theirs forbids
    it in the same way."""

    @property
    def never_written(self) -> tuple[int, ...]:
        return (*super().never_written, self.end)


ENDLESS = EndlessMarks(**MARKS.table())


def translator(model: SequenceModel) -> Translate:
    def translate(sources: Sentences, width: int) -> Sentences:
        config, memory = SearchConfig(beam=width), model.read(np.array(sources))
        requests = [RowRequest([ENDLESS.start], TARGET, config.strategy(number)) for number in range(len(sources))]
        found = search(model.decoder, requests, memory, marks=ENDLESS)
        return [hypotheses[0].tokens for hypotheses in found]

    return translate


def main() -> None:
    given = read_arguments("how")
    how: How = given.how
    size = SIZES[given.size]
    model = sequence_runtime(build_model(size), how)
    if model.choice.how != how:
        raise SystemExit(f"saccade: {how} was asked for, but this runs: {model.choice}")
    time_cells(f"saccade {__version__}, {how}", size, translator(model), given.calls)


if __name__ == "__main__":
    main()
