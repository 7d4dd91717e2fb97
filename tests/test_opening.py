"""Models of a folder on the C kernels, without PyTorch: the same as the trained ones, and not at all if unsure."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conftest import random_sequences
from saccade import native
from saccade.data.ragged import pad_sources
from saccade.decode.engine import engine
from saccade.decode.hypothesis import write_each
from saccade.decode.opening import open_running
from saccade.decode.running import Running, as_array
from saccade.errors import UserError
from saccade.folder import ModelFolder, read_folder
from saccade.models.encdec import EncoderDecoderConfig, build_encoder_decoder
from saccade.models.transformer import StackConfig
from saccade.nn.positions import AnyPositionsConfig, LearnedConfig, NoPositionsConfig, SinusoidalConfig
from saccade.nn.rotary import RotaryConfig
from saccade.tasks.load import ZOO
from saccade.tasks.trained import sequence_model
from saccade.tasks.translator import Translator
from saccade.tokens.vocabulary import TokensConfig, train_vocabulary
from saccade.weights import write_folder

VOCABULARY = train_vocabulary(TokensConfig(kind="bytes"), ["a"])


@pytest.fixture(autouse=True)
def _kernels() -> None:
    if native.kernels() is None:
        pytest.skip(f"no C kernels: {native.why_not()}")


def stored(path: Path, tie: Any = "all", **settings: Any) -> ModelFolder:
    """A small model with weights that would be noticed, as a folder."""
    stack = StackConfig(layers=2, width=24, heads=3, hidden=40, **settings)
    config = EncoderDecoderConfig(encoder=stack, decoder=stack.model_copy(update={"layers": 1}), tie=tie)
    torch.manual_seed(1)
    model = build_encoder_decoder(config, len(VOCABULARY))
    for weight in model.parameters():
        if weight.ndim == 1:
            torch.nn.init.normal_(weight, mean=1.0, std=0.2)
    table = {"task": "translation", "name": "small", "model": config.table(), "layer": 1}
    write_folder(path, table, model, VOCABULARY.tokenizer.to_str(), storage="float32")
    return read_folder(path)


def logits(running: Running, sources: list[list[int]], texts: list[list[int]]) -> np.ndarray:
    with running.at_work():
        memory = running.read(*pad_sources(sources))
        return as_array(write_each(running.decoder, memory, texts)[0])


def furthest(one: Running, other: Running, vocabulary: int) -> float:
    sources, texts = (random_sequences([4, 9, 2], seed=seed, vocabulary=vocabulary) for seed in (1, 2))
    found, expected = logits(one, sources, texts), logits(other, sources, texts)
    return max(float(np.abs(found[n, : len(t)] - expected[n, : len(t)]).max()) for n, t in enumerate(texts))


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize(
    "positions",
    [
        SinusoidalConfig(),
        SinusoidalConfig(layout="halves"),
        LearnedConfig(length=40),
        NoPositionsConfig(),
        RotaryConfig(),
        RotaryConfig(layout="halves", base=50),
    ],
    ids=str,
)
def test_a_folder_opened_without_pytorch_is_the_trained_model(
    tmp_path: Path, norm: str, positions: AnyPositionsConfig
) -> None:
    folder = stored(tmp_path, norm=norm, positions=positions)
    opened = open_running(folder, len(VOCABULARY), "int16")
    assert opened is not None
    trained = engine(sequence_model(folder, len(VOCABULARY)), "int16")
    assert furthest(opened, trained, len(VOCABULARY)) < 1e-3


@pytest.mark.parametrize("tie", ["all", "decoder", "none"])
@pytest.mark.parametrize("settings", [{}, {"activation": "gelu"}], ids=str)
def test_however_its_matrices_are_tied(tmp_path: Path, tie: str, settings: dict[str, Any]) -> None:
    folder = stored(tmp_path, tie, **settings)
    opened = open_running(folder, len(VOCABULARY), "int8")
    assert opened is not None
    assert furthest(opened, engine(sequence_model(folder, len(VOCABULARY)), "int8"), len(VOCABULARY)) < 1e-3


def test_positions_beside_the_words(tmp_path: Path) -> None:
    folder = stored(tmp_path, "none", combine="concatenate", positions=SinusoidalConfig())
    opened = open_running(folder, len(VOCABULARY), "int16")
    assert opened is not None
    assert furthest(opened, engine(sequence_model(folder, len(VOCABULARY)), "int16"), len(VOCABULARY)) < 1e-3


@pytest.mark.parametrize("name", ["en-es", "speller", "pronouncer"])
def test_bundled_models_are_opened_so(name: str) -> None:
    folder = read_folder(ZOO / name)
    translator = Translator.open(folder, "int16")
    size = len(translator.vocabulary)
    assert type(translator.running) is Running
    assert furthest(translator.running, engine(sequence_model(folder, size), "int16"), size) < 2e-2


def test_what_the_kernels_do_not_know_is_left_to_pytorch() -> None:
    folder = read_folder(ZOO / "en-es-rnn")
    assert open_running(folder, 8000, "int16") is None
    assert open_running(read_folder(ZOO / "en-es"), 8000, "exact") is None


def test_nothing_that_is_not_as_the_config_says_reaches_the_kernels(tmp_path: Path) -> None:
    folder = stored(tmp_path)
    size = len(VOCABULARY)
    model: Any = folder.config["model"]
    assert open_running(folder, size + 1, "int16") is None
    for key, value in (("layers", 3), ("width", 48), ("heads", 5), ("heads", 0), ("hidden", 41), ("norm", "other")):
        before = model["encoder"][key]
        model["encoder"][key] = value
        assert open_running(folder, size, "int16") is None, key
        model["encoder"][key] = before
    model["encoder"]["extra"] = 1
    assert open_running(folder, size, "int16") is None
    del model["encoder"]["extra"]
    assert open_running(folder, size, "int16") is not None
    for name, weight in folder.weights.items():
        folder.weights[name] = weight[:-1]
        assert open_running(folder, size, "int16") is None, name
        folder.weights[name] = weight


def test_weights_that_are_no_numbers_are_said(tmp_path: Path) -> None:
    folder = stored(tmp_path)
    next(iter(folder.weights.values())).flat[0] = np.nan
    assert open_running(folder, len(VOCABULARY), "int16") is None
    with pytest.raises(UserError, match="NaN"):
        Translator.open(folder)


COMMANDS = [["translate", "we are eating bread"], ["correct", "teh cat"], ["pronounce", "cat"]]


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_who_asks_does_not_wait_for_pytorch(command: list[str]) -> None:
    script = (
        "import sys\nfrom saccade.decode.measure import fastest\nfrom saccade.cli.main import main\n"
        "if fastest() == 'int16' and 'torch' not in sys.modules:\n"
        f"    sys.argv[1:] = {command!r}\n    try:\n        main()\n"
        "    finally:\n        print('torch' in sys.modules)\n"
        "else:\n    print('measured')"
    )
    for _ in range(2):  # the first may have to measure this machine
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300)
    if done.stdout.strip() == "measured":
        pytest.skip("nothing is remembered here, or another packing is faster")
    assert done.stdout.splitlines()[-1] == "False", done.stdout + done.stderr
