"""From a model folder to what runs it: without PyTorch where the runtime knows all parts, else with PyTorch, if it is
installed."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.gpt import GptConfig
from saccade.arch.heads import ClassHead, EncoderModel, TagsHead, WordsHead
from saccade.errors import UserError
from saccade.folder import ModelFolder
from saccade.runtime.contract import AnyArrayMemory, AnyDecoder, ArraySources, Booleans, Floats, How, Ids, Source
from saccade.runtime.open import Choice, EncoderRuntime, LanguageRuntime, SequenceRuntime, UnknownPart
from saccade.runtime.watch import ArraysHeard
from saccade.tokens.vocabulary import Vocabulary, read_vocabulary

INSTALL = "pip install 'saccade[train]'"


class SequenceModel(Protocol):
    """An encoder and a decoder that answer: `SequenceRuntime`, or PyTorch's twin of it."""

    config: EncoderDecoderConfig
    choice: Choice

    @property
    def decoder(self) -> AnyDecoder: ...

    def read(self, source: Source | ArraySources, mask_MS: Booleans | None = None) -> AnyArrayMemory: ...

    def columns(self, memory: AnyArrayMemory) -> Floats | None: ...

    def look(self, source: Source | ArraySources, target_BT: Ids) -> ArraysHeard: ...


class TextModel(Protocol):
    """A text encoder with a head that answers: `EncoderRuntime`, or PyTorch's twin of it."""

    config: EncoderModel
    choice: Choice
    context: int

    def outputs(
        self,
        tokens_BT: Source,
        mask_BT: Booleans | None = None,
        segments_BT: Ids | None = None,
        chosen_BT: Booleans | None = None,
    ) -> Floats: ...

    def look(self, tokens_BT: Source, segments_BT: Ids | None = None) -> ArraysHeard: ...


def open_sequence(folder: ModelFolder, vocabulary: Vocabulary, how: How | None) -> SequenceModel:
    config = EncoderDecoderConfig.read(folder.config.model, where=folder.where)
    try:
        return SequenceRuntime(config, folder.tensors(config.weights(len(vocabulary))), how)
    except UnknownPart as unknown:
        model: SequenceModel = _with_pytorch(folder, unknown).open_sequence(folder, config, len(vocabulary))
        return model


def open_language(folder: ModelFolder, vocabulary: Vocabulary, how: How | None) -> LanguageRuntime:
    config = GptConfig.read(folder.config.model, where=folder.where)
    return LanguageRuntime(config, folder.tensors(config.weights(len(vocabulary))), how)


def open_encoder(
    folder: ModelFolder, vocabulary: Vocabulary, head: WordsHead | ClassHead | TagsHead, how: How | None
) -> TextModel:
    config = EncoderModel.read({"encoder": folder.config.model, "head": head}, where=folder.where)
    # One id more than the vocabulary has: that of the mask.
    vocabulary_size = len(vocabulary) + 1
    try:
        return EncoderRuntime(config, folder.tensors(config.weights(vocabulary_size)), how)
    except UnknownPart as unknown:
        model: TextModel = _with_pytorch(folder, unknown).open_encoder(folder, config, vocabulary_size)
        return model


class PictureModel(Protocol):
    """An encoder of pictures with a head: `EncoderRuntime`, or PyTorch's twin of it in training."""

    config: EncoderModel
    choice: Choice

    def outputs(self, tokens_BT: Source, mask_BT: Booleans | None = None) -> Floats: ...

    def look(self, tokens_BT: Source) -> ArraysHeard: ...


def open_pictures(folder: ModelFolder, head: ClassHead, how: How | None) -> PictureModel:
    config = EncoderModel.read({"encoder": folder.config.model, "head": head}, where=folder.where)
    return EncoderRuntime(config, folder.tensors(config.weights(0)), how)


def encoder_vocabulary(folder: ModelFolder) -> Vocabulary:
    """The vocabulary of a text encoder, whose mask stands one past its tokens unless the folder says otherwise."""
    vocabulary = read_vocabulary(folder.tokenizer, folder.path / "tokenizer.json", spaced=False, marks=folder.marks)
    if vocabulary.marks.mask is None:
        vocabulary.marks = vocabulary.marks.model_copy(update={"mask": len(vocabulary)})
    return vocabulary


def _with_pytorch(folder: ModelFolder, unknown: UnknownPart) -> Any:
    """The only way from answering to PyTorch."""
    if find_spec("torch") is None:
        raise UserError(f"{folder.path}: its model has {unknown}, which runs only with PyTorch: {INSTALL}")
    return import_module("saccade.weights")
