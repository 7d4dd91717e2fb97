"""Speech: from recordings and what is said in them to a model that writes it down, letter by letter."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.sound import SoundFrontEnd
from saccade.data.batches import SequenceBatch, sequence_batch
from saccade.data.prepared import keep, kept
from saccade.data.ragged import Ragged
from saccade.data.sampler import Sampler
from saccade.data.sound_augment import masked
from saccade.data.speech_frames import (
    Arrays,
    SoundAugmentConfig,
    SpokenFrames,
    changed_frames,
    plain_frames,
    side_by_side,
)
from saccade.data.speech_sets import (
    DIGITS,
    RecordedSets,
    SpeechData,
    SpeechParts,
    Utterance,
    read_sets,
    read_spoken_table,
    read_whole_table,
)
from saccade.data.text import find
from saccade.decode.search import SearchConfig
from saccade.errors import UserError, WrongUse
from saccade.evaluate.calibration import calibration_error, fit_power
from saccade.evaluate.metrics import Score
from saccade.evaluate.speech import letter_errors, monotone_share, right_words, word_errors
from saccade.folder import ModelFolder, Storage
from saccade.models.answering import sequence_runtime
from saccade.models.encdec import EncoderDecoder, build_encoder_decoder
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.pipelines.transcriber import (
    HeardStretch,
    Transcriber,
    TranscriberSettings,
    Transcript,
    unknown_words,
)
from saccade.sites import SOURCE
from saccade.tasks.arithmetic import Figure
from saccade.tasks.contract import Finish, Prepared, Recipe
from saccade.tasks.speech_sizes import spoken_recipe
from saccade.tasks.store import kept_vocabulary
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, train_vocabulary
from saccade.train.loop import Work
from saccade.train.objective import SequenceObjective

COSTS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Natural logarithms of an unknown word that are tried."""
VALIDATION_BEAM = 3
"""Beam width, at most, of the search on the validation part."""
TOLD_FILES = 20
"""Rows left out that are told one by one."""


class SpeechRecipe(Recipe):
    """From recordings to text. A batch holds `train.batch_tokens` positions of the encoder, padding included."""

    task: Literal["speech"] = "speech"
    data: SpeechData
    """The recordings: kind = "sets" or "table"."""
    model: EncoderDecoderConfig
    """An encoder with front = "sound", and a decoder that writes letters."""
    tokens: TokensConfig = TokensConfig(kind="characters")
    """The units of text; kind = "bpe" with few of them is the usual other choice."""
    augment: SoundAugmentConfig = SoundAugmentConfig()
    """How training recordings are changed."""
    ctc: float = Field(0.3, ge=0, lt=1)
    """Share of a second loss, in which the encoder tells the text by itself (CTC; Watanabe et al. 2017)."""
    search: SearchConfig = SearchConfig(beam=8, alpha=0.0, factor=1.0, extra=20, ctc=0.3)
    """How texts are searched for; `ctc` is the share of CTC's score."""
    storage: Storage = "float16"
    """Number format of the stored weights."""
    layer: int = Field(1, ge=1)
    """Cross-attention layer that is drawn by default."""


class SpeechTask:
    """The task of listening, for the commands."""

    name: ClassVar[str] = "speech"
    recipe: ClassVar[type[Recipe]] = SpeechRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[SpeechRecipe, list[str]]:
        """Sizes by the number of rows; a tenth is held out twice."""
        if len(files) != 1:
            raise WrongUse(f"one table of sound files and texts, not {len(files)} files")
        table, told = spoken_recipe(files[0].resolve(), out.name)
        return SpeechRecipe.read(table, where="recipe"), told

    def prepare(
        self, recipe: SpeechRecipe, folders: Sequence[Path], out: Path, *, resume: bool, report: Report = unreported
    ) -> Prepared:
        front = front_of(recipe.model)
        config = recipe.model.model_copy(update={"ctc": recipe.ctc > 0 or None, "tie": "decoder"})
        frames, told = _frames(recipe, front, folders, out, resume=resume, report=report)
        vocabulary = _vocabulary(recipe, frames["train"].texts, out, resume=resume)
        valid = frames["valid"]
        settings = TranscriberSettings(search=recipe.search, layer=recipe.layer)
        known = sorted({word for text in frames["train"].texts for word in text.split()})
        torch.manual_seed(recipe.train.seed)
        model = build_encoder_decoder(config, len(vocabulary))
        batches = _Batches(frames["train"], vocabulary, recipe.augment, recipe.train.seed)
        sampler = _sampler(recipe, batches, front.shrinks << getattr(config.readers[SOURCE], "pyramid", 0))
        epochs = recipe.train.steps * recipe.train.accumulate / len(sampler.batches)
        work = Work(
            model=model,
            objective=SequenceObjective(recipe.train.smoothing, recipe.ctc, vocabulary.marks.pad),
            sampler=sampler,
            batch=batches,
            validate=lambda trained: _validate(trained, vocabulary, settings, valid),
            describe=batches.describe,
        )
        parameters = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
        seconds = int(frames["train"].lengths.sum()) / 100
        return Prepared(
            work=work,
            settings={
                "model": config.table(), "data": recipe.data.table(), "search": recipe.search.table(),
                "layer": recipe.layer, "seed": recipe.train.seed,
            },
            marks=vocabulary.marks,
            storage=recipe.storage,
            messages=[
                *told,
                f"{len(frames['train']):,} training recordings, {seconds / 60:.0f} minutes with their changed copies; "
                f"{len(valid):,} to choose by",
                f"{parameters:,} parameters, {len(vocabulary)} letters and marks, {recipe.train.steps:,} steps = "
                f"{epochs:.1f} epochs",
            ],
            files=_files(recipe.data),
            test=lambda pipeline, _, report: score_parts(
                pipeline, _read(recipe.data, folders, recipe.train.seed, train=False).test, Request(), report
            ),
            words=known,
            finish=lambda _: _finish(Transcriber(sequence_runtime(model), vocabulary, settings, known), valid),
            figure=lambda pipeline: Figure("word error rate", _errors(pipeline, valid), point=-1.0),
        )  # fmt: skip

    def evaluate(
        self,
        pipeline: Transcriber,
        folder: ModelFolder,
        files: Sequence[Path],
        folders: Sequence[Path],
        request: Request,
        *,
        lowercase: bool | None = None,
        report: Report = unreported,
    ) -> list[Score]:
        """Words and letters that are wrong, calibration of words and the share of monotone steps: of tables, or of the
        test parts of the recipe."""
        if files:
            tests = {}
            for file in files:
                tests[file.name], told = read_whole_table(file)
                if told:
                    raise UserError(told[0].removeprefix("left out: "))
            return score_parts(pipeline, tests, request, report)
        table = {"name": "", "train": {"steps": 1}, "data": folder.table("data"), "model": folder.config.model}
        data = SpeechRecipe.read(table, where=folder.where).data
        seed = int(folder.config.settings.get("seed", 1))
        return score_parts(pipeline, _read(data, folders, seed, train=False).test, request, report)


class _Batches:
    """Numbers of recordings -> a batch, with bands and moments left out."""

    def __init__(self, spoken: SpokenFrames, vocabulary: Vocabulary, config: SoundAugmentConfig, seed: int) -> None:
        self.spoken, self.marks, self.config, self.seed = spoken, vocabulary.marks, config, seed
        self.letters = Ragged.of(vocabulary.encode(list(spoken.texts)))

    def __call__(self, numbers: np.ndarray) -> SequenceBatch:
        places = numbers % len(self.spoken)
        random = np.random.default_rng([self.seed, int(numbers[0]), int(numbers[-1]), len(numbers)])
        frames = [
            masked(one, random, bands=self.config.bands, gaps=self.config.gaps) for one in self.spoken.take(places)
        ]
        values, mask = side_by_side(frames)
        real = None if mask is None else torch.from_numpy(mask)
        return sequence_batch(torch.from_numpy(values), real, self.letters, places, self.marks)

    def describe(self, numbers: np.ndarray) -> str:
        return f"of {len(numbers)} recordings (the first: {self.spoken.texts[int(numbers[0]) % len(self.spoken)]!r})"


def _sampler(recipe: SpeechRecipe, batches: _Batches, shrinks: int) -> Sampler:
    """Numbers count on from epoch to epoch, so that a batch is masked in its own way in each of them."""
    positions, letters = -(-batches.spoken.lengths // shrinks), batches.letters.lengths + 1
    wanted = recipe.train.steps * recipe.train.accumulate * recipe.train.batch_tokens
    copies, count = 2 + wanted // int(positions.sum()), len(positions)
    starts = [copy * count for copy in range(copies)]
    sizes = (np.tile(positions, copies), np.tile(letters, copies))
    return Sampler(*sizes, budget=recipe.train.batch_tokens, seed=recipe.train.seed, starts=starts)


def front_of(config: EncoderDecoderConfig) -> SoundFrontEnd:
    """How the only encoder of a listener hears."""
    front = config.readers[SOURCE].front_end if SOURCE in config.readers else None
    if not isinstance(front, SoundFrontEnd):
        raise WrongUse('model.encoder.front: a listener has kind = "sound"')
    return front


def score_parts(
    pipeline: Transcriber, tests: dict[str, list[Utterance]], request: Request, report: Report = unreported
) -> list[Score]:
    """Of every test part."""
    scores: list[Score] = []
    total, done = sum(map(len, tests.values())), 0
    for name, spoken in tests.items():
        answers: list[Transcript] = []
        for one in spoken:
            loudest = max(1.0, float(np.abs(one.samples).max()))
            answer = pipeline.answer([(one.samples / loudest, one.rate)], request)[0]
            if isinstance(answer, UserError):
                raise answer
            answers.append(answer)
            done += 1
            report(done, total)
        scores += _scores(pipeline, spoken, answers, name)
    return scores


def _scores(
    pipeline: Transcriber, spoken: Sequence[Utterance], answers: Sequence[Transcript], name: str
) -> list[Score]:
    right, heard = [one.text for one in spoken], [answer.text for answer in answers]
    found = []
    if all(text in DIGITS for text in right):
        share = 100 * float(np.mean([one == other for one, other in zip(right, heard, strict=True)]))
        found.append(Score(f"digits right, {name}", share, None, f"recordings:{len(right)}"))
    found += [word_errors(right, heard, name), letter_errors(right, heard, name)]
    sure = [word.confidence for answer in answers for word in answer.words]
    said = [one for text, answer in zip(right, answers, strict=True) for one in right_words(text, answer.text)]
    found.append(calibration_error(sure, said, of="words"))
    looks = [pipeline.look_at(one) for answer in answers for one in answer.stretches]
    cross = [one.cross.mean(axis=(0, 1))[:-1] for one in looks]
    return [*found, monotone_share(cross, name)]


def _validate(
    model: nn.Module, vocabulary: Vocabulary, settings: TranscriberSettings, valid: SpokenFrames
) -> dict[str, float]:
    """Word error rate of a narrower search than the one that will be used."""
    assert isinstance(model, EncoderDecoder)
    search = settings.search.model_copy(update={"beam": min(VALIDATION_BEAM, settings.search.beam)})
    narrow = settings.model_copy(update={"search": search})
    return {"wer": _errors(Transcriber(sequence_runtime(model), vocabulary, narrow), valid)}


def _finish(pipeline: Transcriber, valid: SpokenFrames) -> Finish:
    """What an unknown word costs, and what the probabilities of words are raised to, so that they are right as often as
    they say: both by the validation part."""
    known, request = pipeline.words or frozenset(), Request(best=pipeline.settings.search.beam)
    found = pipeline.hear(valid.take(range(len(valid))), [request] * len(valid))

    def ranked(cost: float) -> list[HeardStretch]:
        return [max(best, key=lambda one: one.score - cost * unknown_words(one.text, known)) for best in found]

    wrong = {
        cost: word_errors(list(valid.texts), [one.text for one in ranked(cost)], "validation").value for cost in COSTS
    }
    chosen = min(wrong, key=lambda cost: wrong[cost])  # of equal ones the lowest
    heard = ranked(chosen)
    sure = [word.confidence for one in heard for word in one.words]
    right = [said for one, text in zip(heard, valid.texts, strict=True) for said in right_words(text, one.text)]
    power = round(fit_power(sure, right), 4)
    told = [
        f"an unknown word costs {chosen:g} (word error rate on the validation part {wrong[chosen]:.2f}, without that "
        f"{wrong[0.0]:.2f}); confidences are raised to the power of {power:g}, by {len(sure):,} words"
    ]
    return Finish({"power": power, "unknown_word_cost": chosen}, {}, told, lambda _: [])


def _errors(pipeline: Transcriber, spoken: SpokenFrames) -> float:
    heard = [best[0].text for best in pipeline.hear(spoken.take(range(len(spoken))))]
    return word_errors(list(spoken.texts), heard, "validation").value


def _read(data: SpeechData, folders: Sequence[Path], seed: int, *, train: bool) -> SpeechParts:
    if isinstance(data, RecordedSets):
        return read_sets(data, folders, seed, train=train)
    return read_spoken_table(data, find(data.file, folders), seed)


def _files(data: SpeechData) -> list[str]:
    if not isinstance(data, RecordedSets):
        return [data.file]
    return [f"{folder}/index.tsv" for folder in (data.an4, data.fsdd) if folder]


def _frames(
    recipe: SpeechRecipe, front: SoundFrontEnd, folders: Sequence[Path], out: Path, *, resume: bool, report: Report
) -> tuple[dict[str, SpokenFrames], list[str]]:
    """Computed once, and kept."""
    arrays: Arrays | None = kept(out / "prepared") if resume else None
    told: list[str] = []
    if arrays is None:
        parts = _read(recipe.data, folders, recipe.train.seed, train=True)
        told = parts.told[:TOLD_FILES]
        told += [f"… and {len(parts.told) - TOLD_FILES} others"] if len(parts.told) > TOLD_FILES else []
        train = changed_frames(parts.train, front.rate, front.mels, recipe.augment, recipe.train.seed, report)
        valid = plain_frames(parts.valid, front.rate, front.mels)
        arrays = keep(out / "prepared", train.packed("train") | valid.packed("valid"))
    return {name: SpokenFrames.unpacked(arrays, name) for name in ("train", "valid")}, told


def _vocabulary(recipe: SpeechRecipe, texts: Sequence[str], out: Path, *, resume: bool) -> Vocabulary:
    """That of a resumed run, else one learnt from the training texts."""
    if not (resume and (out / "tokenizer.json").exists()):
        train_vocabulary(recipe.tokens, texts).save(out / "tokenizer.json")
    return kept_vocabulary(out)
