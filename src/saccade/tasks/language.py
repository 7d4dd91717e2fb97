"""Language modelling: trained on text; continues a text."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn

from saccade.arch.gpt import GptConfig
from saccade.carried import CarriedTest
from saccade.config import Table
from saccade.data.documents import TextFile, read_documents
from saccade.data.long_texts import LONG, LongTexts
from saccade.data.prepared import keep, kept
from saccade.data.prompt_families import WordLists
from saccade.data.prompts import CODESPELL, EWT, TATOEBA, read_words
from saccade.data.stream import Stream, Windows, encode_documents
from saccade.decode.choose import log_sum_exp
from saccade.errors import WrongUse
from saccade.evaluate.language import ROWS_TOKENS, surprise
from saccade.evaluate.metrics import Score
from saccade.folder import ModelFolder, Storage
from saccade.models.answering import language_runtime
from saccade.models.gpt import LanguageModel, build_gpt
from saccade.pipelines.completer import Completer
from saccade.pipelines.pipeline import Report, Request, unreported
from saccade.tasks.arithmetic import Figure
from saccade.tasks.contract import Prepared, Recipe, Test
from saccade.tasks.long_texts import are_long, keep_long
from saccade.tasks.prompting import PromptsConfig, accuracies, held_out_pages, training_pages
from saccade.tasks.sizes import language_sizes_for
from saccade.tasks.store import kept_vocabulary
from saccade.tasks.texts import FilesConfig, split_texts
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, train_vocabulary
from saccade.train.loop import TrainConfig, Work
from saccade.train.objective import LanguageObjective
from saccade.train.optim import AdamConfig
from saccade.weights import filled


class LanguageRecipe(Recipe):
    task: Literal["language"] = "language"
    data: Annotated[FilesConfig | PromptsConfig, Field(discriminator="kind")]
    tokens: TokensConfig = TokensConfig(vocabulary=4000)
    model: GptConfig = GptConfig()
    lowercase: bool = False
    """Convert texts and prompts to lower case."""
    storage: Storage = "float16"
    """Number format of the stored weights."""


class LanguageTask:
    """What the commands know of language modelling."""

    name: ClassVar[str] = "language"
    recipe: ClassVar[type[Recipe]] = LanguageRecipe

    def recipe_for(self, files: Sequence[Path], out: Path) -> tuple[LanguageRecipe, list[str]]:
        """Hold out the end of the text and choose the model size by its length."""
        texts = [TextFile(file=str(file.resolve())) for file in files]
        files_size = LongTexts(texts, []).size
        # Of a very long text the sizes are those of many characters, however many they are.
        size = files_size if files_size > LONG else sum(len(text) for text in read_documents(texts, []))
        sizes = language_sizes_for(size)
        recipe = LanguageRecipe(
            name=out.name,
            data=FilesConfig(train=texts, held_out_share=0.1),
            tokens=TokensConfig(vocabulary=sizes.vocabulary) if sizes.vocabulary else TokensConfig(kind="bytes"),
            model=GptConfig(
                layers=sizes.layers,
                width=sizes.width,
                heads=sizes.width // 64,
                feedforward=4 * sizes.width,
                dropout=sizes.dropout,
                context=256,
            ),
            train=TrainConfig(
                steps=sizes.steps,
                batch_tokens=4096,
                warmup=max(1, sizes.steps // 20),
                validate_every=max(1, sizes.steps // 20),
                patience=5,
                smoothing=0.0,
                select_by="-loss",
                adam=AdamConfig(rate=1.5e-3, decay=0.1),
            ),
        )
        units = f"a vocabulary of at most {sizes.vocabulary:,}" if sizes.vocabulary else "bytes"
        told = [
            f"{size:,} characters; the last tenth is held out",
            f"model: {sizes.layers} layers, {sizes.width} wide, dropout {sizes.dropout}; {units}; "
            f"at most {sizes.steps:,} steps",
        ]
        return recipe, told

    def prepare(
        self, recipe: LanguageRecipe, folders: Sequence[Path], out: Path, *, resume: bool, report: Report = unreported
    ) -> Prepared:
        path = out / "tokenizer.json"
        arrays = kept(out / "prepared") if resume and path.exists() else None
        marked = _marked(recipe.data)
        if arrays is None and isinstance(recipe.data, FilesConfig) and are_long(recipe.data, folders):
            vocabulary, arrays = keep_long(
                recipe.data, recipe.tokens, folders, out, lowercase=recipe.lowercase, marked=marked, report=report
            )
        elif arrays is None:
            training, held = _texts(recipe, folders)
            vocabulary = train_vocabulary(recipe.tokens, training, spaced=False)
            vocabulary.save(path)
            arrays = keep(
                out / "prepared",
                {
                    "train": encode_documents(vocabulary, training, marked=marked),
                    "valid": encode_documents(vocabulary, held, marked=marked),
                    "valid_bytes": np.array(sum(len(text.encode()) for text in held)),
                },
            )
        else:
            vocabulary = kept_vocabulary(out, spaced=False)
        torch.manual_seed(recipe.train.seed)
        model = build_gpt(recipe.model, len(vocabulary))
        isolate = not isinstance(recipe.data, FilesConfig) or recipe.data.isolate_documents
        stream, valid = (Stream(arrays[part], vocabulary.marks, isolate) for part in ("train", "valid"))
        text_bytes, context = int(arrays["valid_bytes"]), recipe.model.context
        words = read_words(folders) if isinstance(recipe.data, PromptsConfig) else None
        rows = max(1, recipe.train.batch_tokens // context)
        sampler = Windows(stream, length=context, rows=rows, seed=recipe.train.seed)
        work = Work(
            model=model,
            objective=LanguageObjective(recipe.train.smoothing),
            sampler=sampler,
            batch=lambda starts: stream.batch(starts, context),
            validate=_Validation(recipe.data, vocabulary, valid, text_bytes, words),
            describe=lambda starts: _describe(starts, stream, context, vocabulary),
        )
        epochs = recipe.train.steps * recipe.train.accumulate / sampler.batches
        told = [
            f"{len(stream):,} training tokens, {len(valid):,} held out",
            f"vocabulary {len(vocabulary):,}, {sum(w.numel() for w in model.parameters()):,} parameters, "
            f"{recipe.train.steps:,} steps of {rows} x {context} tokens = {epochs:.1f} epochs",
        ]
        return Prepared(
            work=work,
            settings={
                "model": recipe.model.table(),
                "data": recipe.data.table(),
                "marked": marked,
                "lowercase": recipe.lowercase,
            },
            marks=vocabulary.marks,
            storage=recipe.storage,
            messages=told,
            files=_files(recipe.data),
            test=_test(recipe.data, valid, text_bytes, words),
            carried=(lambda: _carried(recipe, folders)) if _can_be_carried(recipe.data) else None,
            figure=lambda pipeline: bits_per_byte(pipeline, valid, text_bytes),
        )

    def evaluate(
        self,
        pipeline: Completer,
        folder: ModelFolder,
        files: Sequence[Path],
        folders: Sequence[Path],
        request: Request,
        *,
        lowercase: bool | None = None,
        report: Report = unreported,
    ) -> list[Score]:
        """Loss, perplexity and bits per byte of texts; accuracy against the number of examples for a prompts model."""
        data = folder.table("data")
        if not files and isinstance(data, dict) and data.get("kind") == "prompts":
            settings = PromptsConfig.read(data, where=str(folder.path / "config.json"))
            return accuracies(pipeline, settings, read_words(folders), report)
        if files:
            given = [_given(file, data) for file in files]
            texts = read_documents(given, [], lowercase=pipeline.lowercase)
        else:
            if not data:
                raise WrongUse(f"{folder.path}: names no test part; give files: saccade evaluate MODEL FILES")
            trained = FilesConfig.read(data, where=str(folder.path / "config.json"))
            texts = split_texts(trained, folders, lowercase=pipeline.lowercase)[1]
        tokens = encode_documents(pipeline.vocabulary, texts, marked=pipeline.marked)
        # Folders of earlier versions say `apart`.
        isolate = not isinstance(data, dict) or data.get("isolate_documents", data.get("apart")) is not False
        stream = Stream(tokens, pipeline.vocabulary.marks, isolate)
        return _surprise(pipeline, folder, stream, sum(len(text.encode()) for text in texts))


def _surprise(pipeline: Completer, folder: ModelFolder, stream: Stream, text_bytes: int) -> list[Score]:
    config, size = pipeline.model.config, len(pipeline.vocabulary)
    model = filled(folder, config.weights(size), lambda: build_gpt(config, size))
    return surprise(model.eval(), stream).scores(text_bytes)


def bits_per_byte(pipeline: Completer, stream: Stream, text_bytes: int) -> Figure:
    """Of a loaded model, in its own arithmetic. A window of several documents is read as several rows."""
    nats, context = 0.0, pipeline.context
    for batch, _ in stream.windows(context, context, rows=max(1, ROWS_TOKENS // context)):
        tokens_BT, labels_BT = batch.tokens_BT.numpy(), batch.labels_BT.numpy()
        real_BT = np.ones(tokens_BT.shape, dtype=bool) if batch.real_BT is None else batch.real_BT.numpy()
        documents_BT = np.zeros_like(tokens_BT) if batch.documents_BT is None else batch.documents_BT.numpy()
        for tokens_T, labels_T, real_T, documents_T in zip(tokens_BT, labels_BT, real_BT, documents_BT, strict=True):
            for document in np.unique(documents_T[real_T]):
                mine = real_T & (documents_T == document)
                logits_TV = pipeline.model.written(tokens_T[None, mine])[0]
                found = logits_TV[np.arange(mine.sum()), labels_T[mine]] - log_sum_exp(logits_TV)[:, 0]
                nats -= float(found.sum())
    return Figure("bits per byte", nats / math.log(2) / text_bytes, -0.01)


def _given(file: Path, data: Table) -> TextFile:
    """A file to score: it may hold several documents if the training files did, with the same line between them."""
    first: Table = next(iter(data.get("train", [])), {})
    between = {key: first[key] for key in ("documents", "separator") if first.get("documents") == "separated"}
    return TextFile(file=str(file.resolve()), **between)


def _carried(recipe: LanguageRecipe, folders: Sequence[Path]) -> CarriedTest:
    """The held-out documents, as `_given` reads them."""
    assert isinstance(recipe.data, FilesConfig)
    held = split_texts(recipe.data, folders, lowercase=recipe.lowercase)[1]
    return CarriedTest("test.txt.xz", f"\n{recipe.data.train[0].separator}\n".join(held))


def _can_be_carried(data: FilesConfig | PromptsConfig) -> bool:
    """One text, or documents with a line between them; other files cannot be told apart without their settings."""
    if isinstance(data, PromptsConfig):
        return False
    first = data.train[0].documents
    return first == "separated" or (first == "whole" and len(data.train) == 1 and len(data.valid) <= 1)


def _test(data: FilesConfig | PromptsConfig, valid: Stream, text_bytes: int, words: WordLists | None) -> Test:
    """The held-out part is also the test: what a language model has not read."""
    if isinstance(data, PromptsConfig) and words is not None:
        return lambda pipeline, _, report: accuracies(pipeline, data, words, report)
    return lambda pipeline, folder, _: _surprise(pipeline, folder, valid, text_bytes)


class _Validation:
    """Loss on the held-out text; for prompts, also the share of right answers."""

    def __init__(
        self,
        data: FilesConfig | PromptsConfig,
        vocabulary: Vocabulary,
        valid: Stream,
        text_bytes: int,
        words: WordLists | None,
    ) -> None:
        self.data, self.vocabulary, self.valid, self.text_bytes, self.words = data, vocabulary, valid, text_bytes, words

    def __call__(self, model: nn.Module) -> dict[str, float]:
        assert isinstance(model, LanguageModel)
        found = surprise(model, self.valid)
        scores = {"loss": found.loss, "bits_per_byte": found.nats / math.log(2) / self.text_bytes}
        if isinstance(self.data, PromptsConfig) and self.words is not None:
            completer = Completer(language_runtime(model, "exact"), self.vocabulary, marked=True)
            quick = self.data.model_copy(update={"questions": 12})
            right = accuracies(completer, quick, self.words, examples=(4,))
            scores["accuracy"] = right[-1].value
        return scores


def _marked(data: FilesConfig | PromptsConfig) -> bool:
    """Whether the stream has marks: a text that is one document has none."""
    return isinstance(data, PromptsConfig) or len(data.train) > 1 or data.train[0].documents != "whole"


def _files(data: FilesConfig | PromptsConfig) -> list[str]:
    if isinstance(data, PromptsConfig):
        return [EWT, TATOEBA, CODESPELL]
    return [text.file for text in (*data.train, *data.valid)]


def _texts(recipe: LanguageRecipe, folders: Sequence[Path]) -> tuple[list[str], list[str]]:
    if isinstance(recipe.data, PromptsConfig):
        return training_pages(recipe.data, folders), held_out_pages(recipe.data, folders)
    return split_texts(recipe.data, folders, lowercase=recipe.lowercase)


def _describe(starts: np.ndarray, stream: Stream, context: int, vocabulary: Vocabulary) -> str:
    first: list[Any] = stream.tokens[int(starts[0]) : int(starts[0]) + context].tolist()
    return f"of {len(starts)} windows (the first begins at token {int(starts[0]):,}: {vocabulary.decode(first)[:80]!r})"
