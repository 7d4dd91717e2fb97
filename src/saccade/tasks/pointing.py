"""Whether a reader looks where the letter stands that it is writing: words with a box for every character."""

from collections.abc import Sequence

import numpy as np

from saccade.data.word_sets import Photographed
from saccade.evaluate.metrics import Score
from saccade.evaluate.reading import pointing
from saccade.pipelines.pipeline import Report, unreported
from saccade.pipelines.word_reader import ReadWord, WordReader


def pointing_scores(
    pipeline: WordReader, words: Sequence[Photographed], read: Sequence[ReadWord], report: Report = unreported
) -> list[Score]:
    """Over the letters of words that were read right: is the middle of the most attended field in the letter's box?
    Heads are averaged, in the layer that is drawn."""
    hits: list[bool] = []
    chances: list[float] = []
    for done, (word, one) in enumerate(zip(words, read, strict=True), 1):
        if word.boxes is None or len(word.boxes) != len(one.text) or one.text.casefold() != word.text.casefold():
            continue
        height, width = word.pixels_HW.shape
        looks = pipeline.look_at(one).select("cross")
        weights_TS = looks[min(pipeline.layer, len(looks)) - 1].weights_NTS.mean(axis=0)
        rows, columns = pipeline.front.grid
        for (left, top, across, down), weights_S in zip(word.boxes, weights_TS, strict=False):
            row, column = divmod(int(weights_S.argmax()), columns)
            x, y = (column + 0.5) * width / columns, (row + 0.5) * height / rows
            hits.append(bool(left <= x <= left + across and top <= y <= top + down))
            chances.append(float(np.clip(across * down / (height * width), 0, 1)))
        report(done, len(words))
    return pointing(hits, chances) if hits else []
