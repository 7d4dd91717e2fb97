"""Pre-training on plain text: words are masked and predicted."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import model_validator
from torch import nn

from saccade.arch.bert import BertConfig
from saccade.arch.heads import EncoderModel, TextEncoderConfig, WordsHead
from saccade.arch.xlnet import XlnetConfig
from saccade.data.corrupt import Hider, MaskingConfig
from saccade.data.documents import TextFile, read_documents
from saccade.data.prepared import keep, kept
from saccade.data.ragged import Ragged
from saccade.data.rows import EPOCH, Rows
from saccade.data.sentences import Corpus
from saccade.evaluate.masked import guess
from saccade.evaluate.metrics import Score
from saccade.folder import ModelFolder, Storage
from saccade.models.bert import MaskedModel
from saccade.models.encoders import build_encoder_model
from saccade.models.xlnet import PermutationModel
from saccade.pipelines.filler import Filler
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.tasks.arithmetic import Figure
from saccade.tasks.contract import Prepared, Recipe
from saccade.tasks.encoder import with_mask
from saccade.tasks.sizes import masked_sizes_for
from saccade.tasks.store import kept_vocabulary
from saccade.tasks.texts import FilesConfig, split_texts
from saccade.tokens.marks import Marks
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, train_vocabulary
from saccade.train.loop import TrainConfig, Work
from saccade.train.objective import MaskedObjective, PermutedObjective
from saccade.train.optim import AdamConfig
from saccade.weights import filled


class MaskedRecipe(Recipe):
    renamed: ClassVar[Mapping[str, str]] = {"follows": "next_sentence"}

    task: Literal["masked"] = "masked"
    data: FilesConfig
    tokens: TokensConfig = TokensConfig(vocabulary=4096)
    model: TextEncoderConfig = BertConfig()
    masking: MaskingConfig = MaskingConfig()
    next_sentence: bool = False
    """Also predict whether one text follows another (BERT). Otherwise each row is one text (RoBERTa)."""
    storage: Storage = "float16"
    """Number format of the stored weights."""

    @model_validator(mode="after")
    def _two_texts_can_be_told_apart(self) -> "MaskedRecipe":
        if self.next_sentence and (isinstance(self.model, XlnetConfig) or self.model.segments < 2):
            raise ValueError("next_sentence = true needs BERT's model.segments of 2: one for each of the two texts")
        return self


class MaskedTask:
    """The task of pre-training, for the commands."""

    name: ClassVar[str] = "masked"
    recipe: ClassVar[type[Recipe]] = MaskedRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[MaskedRecipe, list[str]]:
        """Hold out the end of the text and choose the model size by its length; blank lines separate documents."""
        texts = [TextFile(file=str(file.resolve()), documents="separated", separator="") for file in files]
        size = sum(len(text) for text in read_documents(texts, []))
        sizes = masked_sizes_for(size)
        recipe = MaskedRecipe(
            name=out.name,
            data=FilesConfig(train=texts, held_out_share=0.1),
            tokens=TokensConfig(vocabulary=sizes.vocabulary),
            model=BertConfig(
                layers=sizes.layers,
                width=sizes.width,
                heads=sizes.width // 64,
                feedforward=4 * sizes.width,
                dropout=sizes.dropout,
                order="pre",
                context=128,
                segments=0,
            ),
            train=TrainConfig(
                steps=sizes.steps,
                batch_tokens=4096,
                warmup=max(1, sizes.steps // 20),
                validate_every=max(1, sizes.steps // 20),
                patience=5,
                smoothing=0.0,
                select_by="-loss",
                adam=AdamConfig(rate=4e-3, decay=0.1),
                muon=0.95,
            ),
        )
        told = [
            f"{size:,} characters, documents parted by blank lines; the last tenth is held out",
            f"model: {sizes.layers} layers, {sizes.width} wide, dropout {sizes.dropout}; a vocabulary of at most "
            f"{sizes.vocabulary:,}; at most {sizes.steps:,} steps",
        ]
        return recipe, told

    def prepare(
        self, recipe: MaskedRecipe, folders: Sequence[Path], out: Path, *, resume: bool, report: Report = unreported
    ) -> Prepared:
        path = out / "tokenizer.json"
        arrays = kept(out / "prepared") if resume and path.exists() else None
        if arrays is None:
            training, held = split_texts(recipe.data, folders, lowercase=False)
            vocabulary = train_vocabulary(recipe.tokens, training, spaced=False)
            vocabulary.save(path)
            parts = {"train": Corpus.of(vocabulary, training), "valid": Corpus.of(vocabulary, held)}
            arrays = keep(out / "prepared", {k: v for name, corpus in parts.items() for k, v in _flat(name, corpus)})
        else:
            vocabulary = kept_vocabulary(out, spaced=False)
        marks = with_mask(vocabulary).marks
        torch.manual_seed(recipe.train.seed)
        described = EncoderModel(encoder=recipe.model, head=WordsHead(next_sentence=recipe.next_sentence))
        model = build_encoder_model(described, len(vocabulary) + 1)
        corpus, valid = (_corpus(name, arrays) for name in ("train", "valid"))
        rows = _rows(recipe, corpus, marks, recipe.train.batch_tokens, recipe.train.seed)
        hider = Hider.of(recipe.masking, vocabulary)
        held_rows = _rows(recipe, valid, marks, recipe.train.batch_tokens, seed=0)
        permuted = isinstance(model, PermutationModel)
        work = Work(
            model=model,
            objective=PermutedObjective() if permuted else MaskedObjective(),
            sampler=rows,
            batch=rows.permuted if permuted else lambda numbers: rows.masked(numbers, hider),
            validate=lambda trained: _validate(trained, held_rows, hider),
            describe=lambda numbers: _describe(numbers, rows, vocabulary),
        )
        epochs = recipe.train.steps * recipe.train.accumulate / len(rows.batches)
        told = [
            f"{corpus.tokens:,} training tokens in {len(corpus.documents) - 1:,} documents, {valid.tokens:,} held out",
            f"vocabulary {len(vocabulary):,}, {sum(w.numel() for w in model.parameters()):,} parameters, "
            f"{recipe.train.steps:,} steps of {recipe.train.batch_tokens:,} tokens = {epochs:.1f} epochs, "
            f"{rows.fill()[0]:.0%} of positions real",
        ]
        return Prepared(
            work=work,
            settings={
                "model": recipe.model.table(),
                "data": recipe.data.table(),
                "masking": recipe.masking.table(),
                "next_sentence": recipe.next_sentence,
            },
            marks=marks,
            storage=recipe.storage,
            messages=told,
            files=[text.file for text in (*recipe.data.train, *recipe.data.valid)],
            test=lambda pipeline, folder, _: _scores(pipeline, folder, valid, hider),
            figure=lambda pipeline: _figure(pipeline, held_rows, hider),
        )

    def evaluate(
        self,
        pipeline: Filler,
        folder: ModelFolder,
        files: Sequence[Path],
        folders: Sequence[Path],
        request: Request,
        *,
        lowercase: bool | None = None,
        report: Report = unreported,
    ) -> list[Score]:
        """Accuracy on masked words and on next sentences, on held-out documents."""
        where = str(folder.path / "config.json")
        if files:
            texts = read_documents([TextFile(file=str(file.resolve())) for file in files], [])
        else:
            trained = FilesConfig.read(folder.table("data"), where=where)
            texts = split_texts(trained, folders, lowercase=False)[1]
        masking = MaskingConfig.read(folder.table("masking"), where=where)
        corpus = Corpus.of(pipeline.vocabulary, texts)
        return _scores(pipeline, folder, corpus, Hider.of(masking, pipeline.vocabulary))


def _scores(pipeline: Filler, folder: ModelFolder, corpus: Corpus, hider: Hider) -> list[Score]:
    vocabulary, config = pipeline.vocabulary, pipeline.model.config
    ids = len(vocabulary) + 1
    model = filled(folder, config.weights(ids), lambda: build_encoder_model(config, ids)).eval()
    assert isinstance(model, MaskedModel | PermutationModel)
    next_sentence = isinstance(model, MaskedModel) and model.follows is not None
    context = config.context
    rows = Rows(corpus, vocabulary.marks, context=context, budget=8192, seed=0, next_sentence=next_sentence)
    return guess(model, rows, hider).scores()


def _rows(recipe: MaskedRecipe, corpus: Corpus, marks: Marks, budget: int, seed: int) -> Rows:
    return Rows(
        corpus,
        marks,
        context=recipe.model.context,
        budget=budget,
        seed=seed,
        next_sentence=recipe.next_sentence,
        static=recipe.masking.masking == "static",
    )


def _validate(model: nn.Module, rows: Rows, hider: Hider) -> dict[str, float]:
    assert isinstance(model, MaskedModel | PermutationModel)
    return guess(model, rows, hider).figures()


def _figure(pipeline: Filler, rows: Rows, hider: Hider) -> Figure:
    """The share of masked words that a loaded model finds."""
    right, masked = 0, 0
    for numbers in rows.batches:
        batch = rows.masked(numbers, hider)
        given = (batch.tokens_BT, batch.mask_BT, batch.segments_BT, batch.chosen_BT)
        logits_NV = pipeline.model.outputs(*(None if one is None else one.numpy() for one in given))  # type: ignore[arg-type]
        right += int((logits_NV.argmax(axis=1) == batch.labels_N.numpy()).sum())
        masked += len(batch.labels_N)
    return Figure("masked words", 100 * right / max(masked, 1))


def _flat(name: str, corpus: Corpus) -> list[tuple[str, np.ndarray]]:
    sentences = corpus.sentences
    kind = np.uint16 if int(sentences.flat.max(initial=0)) < 2**16 else np.uint32
    return [
        (f"{name}_tokens", sentences.flat.astype(kind)),
        (f"{name}_lengths", sentences.lengths),
        (f"{name}_documents", corpus.documents),
    ]


def _corpus(name: str, arrays: dict[str, np.ndarray]) -> Corpus:
    return Corpus(Ragged(arrays[f"{name}_tokens"], arrays[f"{name}_lengths"]), arrays[f"{name}_documents"])


def _describe(numbers: np.ndarray, rows: Rows, vocabulary: Vocabulary) -> str:
    first = rows.batch(numbers[:1]).tokens_BT[0].tolist()
    epoch = int(numbers[0]) // EPOCH
    return f"of {len(numbers)} rows (epoch {epoch}, the first: {vocabulary.decode(first)[:80]!r})"
