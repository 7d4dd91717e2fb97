"""int8 is the default where the validation part shows no loss, and only there."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from saccade import native
from saccade.arch.gpt import GptConfig
from saccade.arch.positions import RotaryConfig
from saccade.data.stream import Stream, encode_documents
from saccade.evaluate.language import surprise
from saccade.folder import change_config, read_config, read_folder
from saccade.models.gpt import LanguageModel, build_gpt
from saccade.pipelines.completer import Completer
from saccade.pipelines.load import load, open_folder
from saccade.tasks.arithmetic import Figure, compare_arithmetic
from saccade.tasks.language import bits_per_byte
from saccade.tokens.vocabulary import TokensConfig, train_vocabulary
from saccade.weights import write_folder

TEXTS = ["the cat sat on the mat", "a dog ran after the cat and the dog sat", "cats and dogs"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small language model."""
    if native.kernels() is None:
        pytest.skip(f"no C kernels: {native.why_not()}")
    torch.manual_seed(1)
    vocabulary = train_vocabulary(TokensConfig(kind="bytes"), TEXTS, spaced=False)
    config = GptConfig(layers=2, width=32, heads=2, feedforward=64, context=16, positions=RotaryConfig())
    settings = {"task": "language", "model": config.table(), "marks": vocabulary.marks.table(), "marked": True}
    vocabulary.save(tmp_path / "tokenizer.json")
    text = (tmp_path / "tokenizer.json").read_text()
    write_folder(tmp_path, settings, build_gpt(config, len(vocabulary)), text, storage="float32")
    return tmp_path


def by_arithmetic(int16: float, int8: float) -> Callable[[Completer], float]:
    return lambda pipeline: {"int16": int16, "int8": int8}[pipeline.choice.how]


@pytest.mark.parametrize(
    ("int16", "int8", "point", "default"),
    [
        (50.0, 50.0, 1.0, "int8"),
        (50.0, 49.95, 1.0, "int8"),
        (50.0, 49.8, 1.0, "int16"),
        (0.97, 0.9695, 0.01, "int8"),
        (0.97, 0.968, 0.01, "int16"),
        (1.03, 1.0305, -0.01, "int8"),
        (1.03, 1.04, -0.01, "int16"),
        (1.03, 1.02, -0.01, "int8"),
    ],
)
def test_a_loss_of_a_tenth_of_a_point_decides(
    folder: Path, int16: float, int8: float, point: float, default: str
) -> None:
    value = by_arithmetic(int16, int8)
    found = compare_arithmetic(read_folder(folder), lambda pipeline: Figure("figure", value(pipeline), point))
    assert found == {"figure": "figure", "int16": int16, "int8": int8, "default": default}


def test_the_folder_says_what_is_the_default(folder: Path) -> None:
    assert load(folder).choice.how == "int16"
    change_config(folder, {"arithmetic": {"figure": "BLEU", "int16": 1.0, "int8": 1.0, "default": "int8"}})
    assert load(folder).choice.how == "int8"
    assert load(folder, "int16").choice.how == "int16"
    assert load(folder, "exact").choice.how == "exact"
    change_config(folder, {"arithmetic": {"figure": "BLEU", "int16": 2.0, "int8": 1.0, "default": "int16"}})
    assert load(folder).choice.how == "int16"


def test_changed_settings_are_digested(folder: Path) -> None:
    change_config(folder, {"name": "other"})
    assert read_config(folder).name == "other"
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"name": "third"}))
    with pytest.raises(Exception, match="changed by hand"):
        read_config(folder)


def test_without_kernels_there_is_nothing_to_compare(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "kernels", lambda: None)
    assert compare_arithmetic(read_folder(folder), lambda _: Figure("figure", 1.0)) is None


@pytest.mark.parametrize("isolate", [True, False])
def test_bits_per_byte_are_those_of_pytorch(folder: Path, isolate: bool) -> None:
    """Windows of several documents included."""
    pipeline = open_folder(read_folder(folder), "exact")
    stream = Stream(encode_documents(pipeline.vocabulary, TEXTS, marked=True), pipeline.vocabulary.marks, isolate)
    model = build_gpt(pipeline.model.config, len(pipeline.vocabulary)).eval()
    weights = read_folder(folder).tensors(pipeline.model.config.weights(len(pipeline.vocabulary)))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(torch.from_numpy(weights[name]))
    assert isinstance(model, LanguageModel)
    expected = surprise(model, stream).nats / np.log(2) / 100
    assert bits_per_byte(pipeline, stream, 100).value == pytest.approx(expected, rel=1e-5)
    for how in ("int16", "int8"):
        found = bits_per_byte(open_folder(read_folder(folder), how), stream, 100).value
        assert found == pytest.approx(expected, rel=2e-2)
        assert found != expected  # in its own arithmetic
