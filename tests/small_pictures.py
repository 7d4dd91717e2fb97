"""Untrained models of pictures and sounds, small enough to be made in a moment: what sees, reads, captions, answers and
hears."""

from typing import Any

import numpy as np
import torch

from conftest import shaken
from saccade.arch.heads import EncoderModel
from saccade.models.answering import encoder_runtime, sequence_runtime
from saccade.models.encoders import build_encoder_model
from saccade.pipelines.captioner import Captioner
from saccade.pipelines.picture_classifier import PictureClassifier
from saccade.pipelines.picture_writer import PictureWriterSettings
from saccade.pipelines.pipeline import Pipeline
from saccade.pipelines.questioner import Questioner
from saccade.pipelines.transcriber import Transcriber, TranscriberSettings
from saccade.pipelines.word_reader import WordReader
from saccade.tokens.vocabulary import TokensConfig, train_vocabulary

STACK = {"kind": "transformer", "width": 16, "heads": 2, "layers": 2, "feedforward": 16}
PATCHES = {"kind": "patches", "height": 16, "width": 16, "channels": 3, "patch": 4}
PICTURE = (np.random.default_rng(0).random((16, 16, 3)) * 255).astype(np.uint8)
CLASSES = ["circle", "square", "star"]
WORDS = train_vocabulary(TokensConfig(vocabulary=300), ["a red circle", "a blue square", "what is it?"] * 3)


def seer(*, side: int = 16, convolutions: bool = False, class_token: bool = False) -> PictureClassifier:
    """A classifier: a Vision Transformer, or a small convolutional network."""
    stages = [{"width": 16, "stride": [2, 2]}, {"width": 32, "stride": [2, 2]}, {"width": 32, "stride": [2, 2]}]
    cnn = {"kind": "grid", "front": {"kind": "convolutions", "height": side, "width": side, "stages": stages}}
    vit = STACK | {"front": PATCHES | {"height": side, "width": side, "class_token": class_token}}
    pooling = "first" if class_token else "mean"
    config = EncoderModel.read(
        {"encoder": cnn if convolutions else vit, "head": {"outputs": 3, "pooling": pooling}}, where="seer"
    )
    torch.manual_seed(0)
    model = build_encoder_model(config, 0).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return PictureClassifier(encoder_runtime(model, config), CLASSES)


def sequence(encoders: dict[str, Any]) -> Any:
    return sequence_runtime(shaken({**encoders, "decoder": STACK}, len(WORDS), 0), "exact")


def hearer() -> tuple[Transcriber, tuple[np.ndarray, int]]:
    """A transcriber, and a second of something loud in the middle."""
    stages = [{"width": 4, "stride": [2, 2]}]
    front = {"kind": "sound", "rate": 8_000, "mels": 16, "stages": stages}
    settings = TranscriberSettings.model_validate({"search": {"beam": 1, "extra": 6, "factor": 0}})
    model = sequence({"encoder": STACK | {"front": front, "positions": {"kind": "rotary"}}})
    loud = np.repeat([0.02, 0.5, 0.02], [3_000, 3_000, 2_000]).astype(np.float32)
    sound = loud * np.random.default_rng(0).uniform(-1, 1, 8_000).astype(np.float32)
    return Transcriber(model, WORDS, settings), (sound, 8_000)


def pipelines() -> dict[str, tuple[Pipeline[Any, Any], Any]]:
    """Each with something it takes."""
    settings = PictureWriterSettings.model_validate({"search": {"beam": 1, "extra": 5}})
    picture, text = STACK | {"front": PATCHES}, STACK
    grey = STACK | {"front": PATCHES | {"channels": 1}}
    both = {"encoders": {"question": text, "picture": picture}}
    reader = WordReader(sequence({"encoder": grey}), WORDS)
    reader.cut = "word"
    return {
        "sees": (seer(), PICTURE),
        "sees, class token": (seer(class_token=True), PICTURE),
        "sees, convolutions": (seer(convolutions=True), PICTURE),
        "captions": (Captioner(sequence({"encoder": picture}), WORDS, settings), PICTURE),
        "answers": (Questioner(sequence(both), WORDS, settings), (PICTURE, "what is it?")),
        "reads": (reader, PICTURE[..., 0]),
    }
