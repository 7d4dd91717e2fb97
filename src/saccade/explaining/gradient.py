"""Which gradient explains which kind of answer: the arrays that a model read and wrote, handed to PyTorch."""

from importlib import import_module
from typing import Any

import numpy as np

from saccade.axes import Axis, Pieces, Time
from saccade.errors import UserError
from saccade.explaining.boxes import BlackBox
from saccade.explaining.rows import rows_of
from saccade.pipelines.classifier import Class, Classifier
from saccade.pipelines.completer import Completer, Completion
from saccade.pipelines.corrector import Correction, Corrector
from saccade.pipelines.filler import Filler, Filling
from saccade.pipelines.picture_classifier import PictureClass, PictureClassifier
from saccade.pipelines.picture_writer import PictureAnswer, PictureWriter
from saccade.pipelines.pronouncer import Pronouncer, Pronunciation
from saccade.pipelines.tagger import Tagged, Tagger
from saccade.pipelines.transcriber import Transcriber, Transcript
from saccade.pipelines.translator import Translation, Translator
from saccade.pipelines.walker import Walk, Walker
from saccade.pipelines.word_reader import PictureText, WordReader
from saccade.runtime.contract import Floats
from saccade.sites import SOURCE
from saccade.sources.spectrogram import STEP
from saccade.sources.text import pad_sources


def gradient_values(subject: BlackBox) -> tuple[Floats, Axis | None]:
    """A value for every position of a text, and what stands there; or, without an axis, the gradient of the pixels."""
    pipeline, answer = subject.pipeline, subject.answer
    if pipeline is None or pipeline.home is None:
        raise UserError("gradients are of models that were loaded from a folder")
    gradients, path = import_module("saccade.evaluate.gradients"), pipeline.home.path
    if isinstance(answer, Class | Tagged | Filling | PictureClass):
        return _of_encoder(gradients, path, pipeline, answer, subject)
    if isinstance(answer, Completion) and isinstance(pipeline, Completer):
        ids = [*answer.prompt_ids, *answer.ids]
        rows = rows_of(answer, subject.pieces) or []
        targets = {row: ids[row + 1] for row in rows if row + 1 < len(ids)}
        config, size = pipeline.model.config, len(pipeline.vocabulary)
        values = gradients.gradient_of_language(path, config, size, ids, targets)
        return values[: len(answer.prompt_ids)], Pieces.of(pipeline.vocabulary, answer.prompt_ids)
    return _of_sequence(gradients, path, pipeline, answer, subject)


def _of_encoder(gradients: Any, path: Any, pipeline: Any, answer: Any, subject: BlackBox) -> tuple[Floats, Axis | None]:
    segments, axis, extra = None, None, 1
    if isinstance(pipeline, PictureClassifier):
        source, targets, extra = pipeline.source.collate([answer.item]).values, {0: _class(pipeline, answer)}, 0
    elif isinstance(pipeline, Classifier):
        item = pipeline.source.read(answer.source)
        batch = pipeline.source.collate([item])
        source, segments, axis = batch.values, batch.segments, pipeline.source.labels(item)
        targets = {0: _class(pipeline, answer)}
    elif isinstance(pipeline, Filler):
        source, axis = np.array([answer.read_ids]), Pieces.of(pipeline.vocabulary, answer.read_ids)
        targets = {row: answer.ids[row] for row in rows_of(answer, subject.pieces) or []}
    else:
        assert isinstance(pipeline, Tagger)
        axis = answer.looks.layers[0].columns
        words = range(len(answer.tags)) if subject.pieces is None else subject.pieces
        rows = rows_of(answer, list(words)) or []
        targets = {row: pipeline.tags.index(answer.tags[word]) for row, word in zip(rows, words, strict=True)}
        source = pipeline.read_tokens(answer)
    size = 0 if extra == 0 else len(pipeline.vocabulary) + extra
    return gradients.gradient_of_encoder(path, pipeline.model.config, size, source, segments, targets), axis


def _class(pipeline: Any, answer: Any) -> int:
    place: int = pipeline.classes.index(answer.text)
    return place


def _of_sequence(
    gradients: Any, path: Any, pipeline: Any, answer: Any, subject: BlackBox
) -> tuple[Floats, Axis | None]:
    axis: Axis | None = None
    if isinstance(pipeline, PictureWriter) and isinstance(answer, PictureAnswer):
        read, mask = pipeline.sources(*pipeline.read([pipeline.item_of(answer)]))
        sources = read if isinstance(read, dict) else {SOURCE: (read, mask)}
        ids, model, vocabulary = answer.ids, pipeline.model, pipeline.vocabulary
        found = answer.looks.select("cross", subject.memory)[0].columns if sources is read else None
        axis = found if isinstance(found, Pieces) else None
    elif isinstance(pipeline, WordReader) and isinstance(answer, PictureText):
        word = answer.words[0]
        sources = {SOURCE: (word.pixels_HW[None, ..., None].astype(np.float32) / np.float32(255), None)}
        ids, model, vocabulary = word.ids, pipeline.model, pipeline.vocabulary
    elif isinstance(pipeline, Transcriber) and isinstance(answer, Transcript):
        heard = answer.stretches[0]
        sources = {SOURCE: (heard.frames_TF[None], None)}
        ids, model, vocabulary = heard.ids, pipeline.model, pipeline.vocabulary
    else:
        translator, part = _translation(pipeline, answer)
        one = part.sentences[0]
        sources = {SOURCE: pad_sources([one.source_ids], translator.vocabulary.marks)}
        ids, model, vocabulary = one.hypothesis.tokens, translator.model, translator.vocabulary
        axis = Pieces.of(vocabulary, one.source_ids, end=True)
    marks = vocabulary.marks
    every = [*ids, marks.end]
    places = range(len(every)) if subject.pieces is None else subject.pieces
    written, targets = [marks.start, *ids], {place: every[place] for place in places}
    memory = subject.memory if len(sources) > 1 else next(iter(sources))
    values = gradients.gradient_of_sequence(path, model.config, len(vocabulary), sources, memory, written, targets)
    if isinstance(answer, Transcript):  # as if every energy went from the mean, which is 0, to what it is
        frames_TF = answer.stretches[0].frames_TF
        return (values * frames_TF).sum(axis=1), Time(count=len(frames_TF), seconds=STEP)
    return values, axis


def _translation(pipeline: Any, answer: Any) -> tuple[Translator, Translation]:
    match pipeline, answer:
        case Translator(), Translation():
            return pipeline, answer
        case Pronouncer(), Pronunciation():
            return pipeline.translator, answer.parts[0]
        case Corrector(), Correction():
            return pipeline.translator, answer.parts[0]
        case Walker(), Walk():
            return pipeline.translator, answer.translation
    raise UserError(f"there is no gradient for a {type(pipeline).__name__}: try --method rise")
