"""A trained listener: a recording in, its text out, letter by letter, with times, confidences and where each letter was
heard (listen, attend and spell; Chan et al. 2016)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from saccade.arch.recurrent import RecurrentEncoderConfig
from saccade.arch.sound import SoundFrontEnd
from saccade.axes import Axis, Pieces, Time
from saccade.decode.ctc import CtcColumns, align
from saccade.decode.filters import softmax
from saccade.decode.hypothesis import Hypothesis, write_each
from saccade.decode.row import Beam, RowRequest
from saccade.decode.search import SearchConfig, search
from saccade.errors import UserError
from saccade.folder import ModelFolder, TaskSettings
from saccade.look.record import Looks
from saccade.look.soundtrack import Soundtrack, SpokenWord
from saccade.pipelines.answer import Answer, Values
from saccade.pipelines.forced import Forced, forced_text, in_batches, only_part
from saccade.pipelines.opening import SequenceModel, open_sequence
from saccade.pipelines.pauses import Stretch, cut_at_pauses
from saccade.pipelines.pipeline import Pipeline, Report, Request, once_each, unreported
from saccade.pipelines.searching import asked_search
from saccade.pipelines.subtitles import srt, vtt
from saccade.runtime.contract import ArrayMemory, Floats, How
from saccade.runtime.open import Choice
from saccade.runtime.watch import watching
from saccade.sites import SOURCE, TARGET
from saccade.sources.sound import SoundItem, SoundSource
from saccade.sources.source import padded
from saccade.sources.spectrogram import STEP, log_mel, normalised
from saccade.tokens.vocabulary import Vocabulary, read_vocabulary

FRAMES_AT_ONCE = 8_000
"""Of stretches that are read side by side, padding included."""
STRETCH = 9.0
"""Seconds of a stretch, at most: longer recordings are cut."""
DOUBTFUL = 0.5
"""Words less sure than this are remarked on."""


class TranscriberSettings(TaskSettings):
    """What a model folder says about listening."""

    search: SearchConfig = SearchConfig()
    """How texts are searched for where nothing else is asked."""
    layer: int = 1
    """Cross-attention layer that is drawn by default."""
    unknown_word_cost: float = 0.0
    """Natural logarithms that a word costs that no training text had, when a search's texts are ranked: fitted on the
    validation part."""
    power: float = 1.0
    """What the probability of a word is raised to, so that it means what it says: fitted on the validation part."""


@dataclass(frozen=True)
class HeardWord:
    """A word that was heard."""

    text: str
    start: float
    """Seconds from the beginning of the recording."""
    end: float
    confidence: float
    """Probability of its letters and of what ends it, each given those before, calibrated."""

    def record(self) -> Values:
        """As plain values."""
        times = {"start": round(self.start, 3), "end": round(self.end, 3)}
        return {"text": self.text, **times, "confidence": round(self.confidence, 4)}


@dataclass(frozen=True)
class HeardStretch:
    """What was heard in one stretch."""

    text: str
    ids: list[int] = field(repr=False)
    words: list[HeardWord] = field(repr=False)
    """Their times are counted from the beginning of the stretch."""
    score: float
    """The log-probability that the search ranks by."""
    start: float = 0.0
    """Where the stretch begins, in seconds."""
    frames_TF: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)), repr=False, compare=False)
    """As the model heard it."""

    @property
    def timed(self) -> list[HeardWord]:
        """The words with times from the beginning of the recording."""
        return [replace(word, start=word.start + self.start, end=word.end + self.start) for word in self.words]


@dataclass(frozen=True)
class Transcript(Answer):
    """The text of a recording; its score is the confidence of its least certain word."""

    words: list[HeardWord] = field(repr=False)
    """Each with its time and its confidence."""
    seconds: float = field(repr=False)
    """Of the whole recording."""
    stretches: list[HeardStretch] = field(repr=False)
    """The parts between pauses, each heard by itself."""

    @property
    def warnings(self) -> list[str]:
        doubtful = [f"{word.text} ({word.confidence:.2f})" for word in self.words if word.confidence < DOUBTFUL]
        many = ", …" if len(doubtful) > 5 else ""
        return [f"not sure of {', '.join(doubtful[:5])}{many}"] if doubtful else []

    @property
    def srt(self) -> str:
        """Subtitles."""
        return srt(self.words)

    @property
    def vtt(self) -> str:
        """Subtitles for the web."""
        return vtt(self.words)

    def record(self) -> Values:
        record: Values = {"source": self.source, "text": self.text, "confidence": round(self.score, 4)}
        record |= {"seconds": round(self.seconds, 3), "words": [word.record() for word in self.words]}
        if self.others:
            record["best"] = [{"text": one.text, "confidence": round(one.score, 4)} for one in self.best]
        return record


class Transcriber(Pipeline[SoundItem, Transcript]):
    """Writes what is said in a recording: `transcribe("speech.wav").text`."""

    options = frozenset({"beam", "alpha", "best"})
    at_once: ClassVar[int] = 8

    def __init__(
        self,
        model: SequenceModel,
        vocabulary: Vocabulary,
        settings: TranscriberSettings,
        words: Sequence[str] | None = None,
    ) -> None:
        """`words` are those of the training texts, if they are known."""
        self.model, self.vocabulary, self.settings = model, vocabulary, settings
        self.words = None if words is None else frozenset(words)

    @classmethod
    def open(cls, folder: ModelFolder, how: How | None = None) -> "Transcriber":
        """The model of a folder."""
        vocabulary = read_vocabulary(folder.tokenizer, folder.path / "tokenizer.json", marks=folder.marks)
        settings = folder.settings(TranscriberSettings)
        return cls(open_sequence(folder, vocabulary, how), vocabulary, settings, folder.words)

    @cached_property
    def source(self) -> SoundSource:
        return SoundSource(rate=self.front.rate)

    @cached_property
    def front(self) -> SoundFrontEnd:
        """How a recording becomes vectors."""
        front = self.model.config.readers[SOURCE].front_end
        if not isinstance(front, SoundFrontEnd):
            raise UserError(f"a transcriber's encoder has front = 'sound', not {front.kind!r}")
        return front

    @cached_property
    def step(self) -> float:
        """Seconds of one position that the decoder looks at."""
        reader = self.model.config.readers[SOURCE]
        halved = reader.pyramid if isinstance(reader, RecurrentEncoderConfig) else 0
        return STEP * (self.front.shrinks << halved)

    @property
    def choice(self) -> Choice:
        return self.model.choice

    def answer_items(
        self, items: Sequence[SoundItem], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[Transcript]:
        stretches = [cut_at_pauses(item.samples, item.rate, STRETCH) for item in items]
        frames = [self.frames(item, stretch) for item, some in zip(items, stretches, strict=True) for stretch in some]
        asked = [request for request, some in zip(requests, stretches, strict=True) for _ in some]
        found = iter(self.hear(frames, asked))
        transcripts = []
        for item, some, request in zip(items, stretches, requests, strict=True):
            heard = [[replace(one, start=stretch.start / item.rate) for one in next(found)] for stretch in some]
            ranked = [
                self._transcript(item, [best[min(rank, len(best) - 1)] for best in heard])
                for rank in range(min(request.best, max((len(best) for best in heard), default=1)))
            ]
            ranked[0].others.extend(ranked[1:])
            transcripts.append(ranked[0])
        report(len(items), len(items))
        return transcripts

    def _transcript(self, item: SoundItem, heard: list[HeardStretch]) -> Transcript:
        told = [one for one in heard if one.text]
        words = [word for one in told for word in one.timed]
        score = min((word.confidence for word in words), default=1.0)
        text = " ".join(one.text for one in told)
        return Transcript(item.name, text, score, words, item.seconds, told, pipeline=self)

    def frames(self, item: SoundItem, stretch: Stretch) -> np.ndarray:
        """A stretch as the model hears it."""
        return normalised(log_mel(item.samples[stretch.start : stretch.end], item.rate, self.front.mels))

    def hear(
        self, frames: Sequence[np.ndarray], requests: Sequence[Request] = (), report: Report = unreported
    ) -> list[list[HeardStretch]]:
        """What is said in each of several stretches, best first; similar lengths are read together."""
        asked = requests or [Request()] * len(frames)
        configs = once_each(lambda one: asked_search(self.settings.search, one, "search"), asked)
        order = sorted(range(len(frames)), key=lambda n: len(frames[n]))
        found: list[list[HeardStretch]] = [[] for _ in frames]
        done = 0
        while done < len(order):
            longest, part = 0, list[int]()
            for number in order[done:]:
                longest = max(longest, len(frames[number]))
                if part and longest * (len(part) + 1) > FRAMES_AT_ONCE:
                    break
                part.append(number)
            texts = self._hear([frames[n] for n in part], [configs[n] for n in part])
            for number, heard in zip(part, texts, strict=True):
                found[number] = _distinct(heard)[: asked[number].best]
            done += len(part)
            report(done, len(order))
        return found

    def _hear(self, frames: Sequence[np.ndarray], configs: Sequence[SearchConfig]) -> list[list[HeardStretch]]:
        memory = self.model.read(*padded(frames, axes=1))
        assert isinstance(memory, ArrayMemory)
        columns = self.columns(memory)
        marks = self.vocabulary.marks
        rows = [
            self._row(config, int(self.positions(len(one))), columns[number] if columns else None)
            for number, (one, config) in enumerate(zip(frames, configs, strict=True))
        ]
        texts = [self._ranked(some) for some in search(self.model.decoder, rows, memory, marks=marks)]
        flat = [(number, text) for number, some in enumerate(texts) for text in some]
        kept = memory.rows(np.array([number for number, _ in flat]))
        read = [[marks.start, *text.tokens] for _, text in flat]
        cross = None
        if columns is None:  # times come from the looks
            with watching() as looks:
                logits, _ = write_each(self.model.decoder, kept, read)
            cross = looks.of("cross")
        else:
            logits, _ = write_each(self.model.decoder, kept, read)
        found: list[list[HeardStretch]] = [[] for _ in frames]
        for place, (number, text) in enumerate(flat):
            count = int(self.positions(len(frames[number])))
            if columns is not None:
                starts, ends = align(columns[number], text.tokens, marks.pad)
            else:
                assert cross is not None
                starts, ends = _looked_at(cross[:, place].mean(axis=(0, 1))[: len(text.tokens), :count])
            each = _chances(logits[place], [*text.tokens, marks.end], marks.never_written)
            words = self._words(text, each, starts * self.step, ends * self.step)
            whole = self.vocabulary.decode(text.tokens)
            found[number].append(
                HeardStretch(" ".join(whole.split()), text.tokens, words, text.score, frames_TF=frames[number])
            )
        return found

    def _ranked(self, texts: list[Hypothesis]) -> list[Hypothesis]:
        """Texts of known words come before others that are not much likelier."""
        cost, known = self.settings.unknown_word_cost, self.words
        if not cost or known is None:
            return texts
        costs = [text.score - cost * unknown_words(self.vocabulary.decode(text.tokens), known) for text in texts]
        return [texts[place] for place in sorted(range(len(texts)), key=lambda place: -costs[place])]

    def _row(self, config: SearchConfig, positions: int, logprobs_SV: Floats | None) -> RowRequest:
        marks = self.vocabulary.marks
        joint = config.ctc > 0 and logprobs_SV is not None and config.temperature is None
        strategy = Beam(config.beam, config.alpha) if joint else config.strategy(0)
        columns = (
            CtcColumns(logprobs_SV, marks.pad, marks.end, config.ctc) if joint and logprobs_SV is not None else None
        )
        return RowRequest([marks.start], config.limit(positions), strategy, columns=columns)

    def columns(self, memory: ArrayMemory) -> list[Floats] | None:
        """What CTC says of each recording's real positions; None where the model has no such layer."""
        found = self.model.columns(memory)
        if found is None:
            return None
        counts = [found.shape[1]] * len(found) if memory.mask_MS is None else memory.mask_MS.sum(axis=1).tolist()
        return [logprobs[:count] for logprobs, count in zip(found, counts, strict=True)]

    def positions(self, frames: int) -> int:
        """How many positions of the memory so many frames make."""
        return -(-frames // round(self.step / STEP))

    def _words(self, text: Hypothesis, each: list[float], starts: np.ndarray, ends: np.ndarray) -> list[HeardWord]:
        """Letters between spaces, with the chance of all of them and of what ends the word."""
        pieces = self.vocabulary.pieces(text.tokens)
        found: list[HeardWord] = []
        first: int | None = None
        for place in range(len(pieces) + 1):
            over = place == len(pieces)
            begins = not over and first is not None and pieces[place][:1].isspace()
            if first is not None and (over or begins):
                word = "".join(pieces[first:place]).strip()
                chance = float(np.prod(each[first : place + 1])) ** self.settings.power
                found.append(HeardWord(word, float(starts[first]), float(ends[place - 1]), chance))
                first = None
            if not over and first is None and pieces[place].strip():
                first = place
        return found

    def forced(self, answer: Transcript, inputs: Sequence[Any] | None = None) -> Forced:
        """Letters; inputs are whole recordings, of which the same stretch is heard."""
        if not answer.stretches:
            raise UserError(f"{answer.source}: nothing was heard, and there is nothing to explain")
        if inputs is None:
            return Forced.join([self._forced(one, [one.frames_TF]) for one in answer.stretches])
        only_part(len(answer.stretches), "stretch")
        heard = answer.stretches[0]
        frames = [self._same_stretch(self.source.read(one), heard) for one in inputs]
        return in_batches(len(frames), lambda part: self._forced(heard, frames[part]))

    def _forced(self, heard: HeardStretch, frames: Sequence[np.ndarray]) -> Forced:
        memory = self.model.read(*padded(frames, axes=1))
        hypothesis = Hypothesis(heard.ids, 0.0, 0.0, finished=True)
        return forced_text(self.model.decoder, memory, len(frames), hypothesis, self.vocabulary)

    def _same_stretch(self, item: SoundItem, heard: HeardStretch) -> np.ndarray:
        start, count = round(heard.start * item.rate), len(heard.frames_TF)
        end = start + round(count * STEP * item.rate)
        # A last frame may be shorter: what is left of it belongs to the stretch.
        end = len(item.samples) if abs(len(item.samples) - end) < STEP * item.rate else end
        return self.frames(item, Stretch(start, end))

    def look(self, answer: Transcript) -> Looks:
        """Where each letter looked, stretch by stretch, over what was heard."""
        if not answer.stretches:
            raise UserError(f"{answer.source}: nothing was heard, so there is nothing to draw")
        parts = [self.look_at(one) for one in answer.stretches]
        return Looks.join(parts).over([self._soundtrack(one) for one in answer.stretches])

    def look_at(self, heard: HeardStretch) -> Looks:
        """Where each letter of a stretch looked."""
        read = [self.vocabulary.marks.start, *heard.ids]
        looks = self.model.look(heard.frames_TF[None], np.array([read]))
        axes: dict[str, Axis] = {
            SOURCE: Time(count=self.positions(len(heard.frames_TF)), seconds=self.step),
            TARGET: Pieces.of(self.vocabulary, read),
        }
        written = Pieces.letters([*self.vocabulary.pieces(heard.ids), "(end)"])
        return Looks.of(looks, axes, written=written, layer=self.settings.layer)

    def _soundtrack(self, heard: HeardStretch) -> Soundtrack:
        words = tuple(SpokenWord(word.text, word.start, word.end, word.confidence) for word in heard.words)
        return Soundtrack(heard.frames_TF, STEP, self.step, heard.start, words)


def unknown_words(text: str, known: Collection[str]) -> int:
    """How many words of a text are not known."""
    return sum(word not in known for word in text.split())


def _chances(logits_TV: Floats, ids: list[int], never: Sequence[int]) -> list[float]:
    logits_TV = logits_TV[: len(ids)].copy()
    logits_TV[:, [one for one in never if one < logits_TV.shape[1]]] = -np.inf
    chances_TV = softmax(logits_TV)
    return [float(chances_TV[place, token]) for place, token in enumerate(ids)]


def _distinct(heard: Sequence[HeardStretch]) -> list[HeardStretch]:
    """The best of each text: pieces can be put together, and spaces doubled, in several ways."""
    found: dict[str, HeardStretch] = {}
    for one in heard:
        found.setdefault(one.text, one)
    return list(found.values())


def _looked_at(weights_TS: Floats) -> tuple[np.ndarray, np.ndarray]:
    """Where attention was: each letter's largest weight, never before the letter before it."""
    if not len(weights_TS):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    places = np.maximum.accumulate(weights_TS.argmax(axis=1))
    return places, places + 1
