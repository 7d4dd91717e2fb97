"""Model folders without PyTorch: the same as the trained model, and refused if anything is not as the config says."""

import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conftest import MARKS, random_sequences
from saccade import native
from saccade.arch.encoder_decoder import EncoderDecoderConfig, StackConfig
from saccade.arch.positions import AnyPositionsConfig, LearnedConfig, NoPositionsConfig, RotaryConfig, SinusoidalConfig
from saccade.arch.weights import parameters
from saccade.decode.hypothesis import write_each
from saccade.errors import UserError
from saccade.folder import ModelFolder, read_folder
from saccade.models.encdec import build_encoder_decoder
from saccade.pipelines.load import ZOO
from saccade.pipelines.opening import SequenceModel, open_sequence
from saccade.pipelines.translator import Translator
from saccade.runtime.contract import Array
from saccade.runtime.open import SequenceRuntime
from saccade.sources.text import pad_sources
from saccade.tensors import StoredTensor, StoredTensors
from saccade.tokens.vocabulary import TokensConfig, train_vocabulary
from saccade.weights import open_sequence as open_with_pytorch
from saccade.weights import write_folder

VOCABULARY = train_vocabulary(TokensConfig(kind="bytes"), ["a"])


def stored(path: Path, tie: Any = "all", **settings: Any) -> ModelFolder:
    """A small model with weights that would be noticed, as a folder."""
    stack = StackConfig.read({"layers": 2, "width": 24, "heads": 3, "feedforward": 40} | settings, where="test")
    config = EncoderDecoderConfig(encoder=stack, decoder=stack.model_copy(update={"layers": 1}), tie=tie)
    torch.manual_seed(1)
    model = build_encoder_decoder(config, len(VOCABULARY))
    for weight in model.parameters():
        if weight.ndim == 1:
            torch.nn.init.normal_(weight, mean=1.0, std=0.2)
    table = {"task": "translation", "name": "small", "model": config.table(), "layer": 1}
    write_folder(path, table, model, VOCABULARY.tokenizer.to_str(), storage="float32")
    return read_folder(path)


def logits(model: SequenceModel, sources: list[list[int]], texts: list[list[int]]) -> Array:
    return write_each(model.decoder, model.read(*pad_sources(sources, MARKS)), texts)[0]


def furthest(folder: ModelFolder, vocabulary: Any, how: Any) -> float:
    """How far the logits of an opened folder are from PyTorch's, at most."""
    config = EncoderDecoderConfig.read(folder.config.model, where="test")
    one, other = open_sequence(folder, vocabulary, how), open_with_pytorch(folder, config, len(vocabulary))
    sources, texts = (random_sequences([4, 9, 2], seed=seed, vocabulary=len(vocabulary)) for seed in (1, 2))
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
def test_an_opened_folder_is_the_trained_model(tmp_path: Path, norm: str, positions: AnyPositionsConfig) -> None:
    folder = stored(tmp_path, order=norm, positions=positions)
    assert furthest(folder, VOCABULARY, "exact") < 5e-5


@pytest.mark.parametrize("tie", ["all", "decoder", "none"])
@pytest.mark.parametrize("settings", [{}, {"activation": "gelu"}, {"gated": True, "norm": "rms"}], ids=str)
def test_however_its_matrices_are_tied(tmp_path: Path, tie: str, settings: dict[str, Any]) -> None:
    assert furthest(stored(tmp_path, tie, **settings), VOCABULARY, "exact") < 5e-5


def test_positions_beside_the_words(tmp_path: Path) -> None:
    folder = stored(tmp_path, "none", combine="concatenate", positions=SinusoidalConfig())
    assert furthest(folder, VOCABULARY, "exact") < 5e-5


@pytest.mark.parametrize("name", ["en-es", "en-es-rnn", "speller", "pronouncer"])
def test_bundled_models_are_opened_so(name: str) -> None:
    folder = read_folder(ZOO / name)
    vocabulary = Translator.open(folder, "exact").vocabulary
    assert furthest(folder, vocabulary, "exact") < 2e-4
    if native.kernels() and name != "en-es-rnn":
        assert Translator.open(folder).choice.engine == "kernels"
        assert furthest(folder, vocabulary, None) < 0.2


def test_nothing_that_is_not_as_the_config_says_is_run(tmp_path: Path) -> None:
    folder = stored(tmp_path)
    model: Any = folder.config.model

    def refuses(match: str) -> None:
        with pytest.raises(UserError, match=match or None):
            open_sequence(folder, VOCABULARY, None)

    for key, value in (("layers", 3), ("feedforward", 41), ("gated", True), ("bias", False)):
        before = model["encoder"][key]
        model["encoder"][key] = value
        refuses("weights and config.json disagree")
        model["encoder"][key] = before
    for key, value in (("width", 48), ("heads", 5), ("heads", 0), ("norm", "other"), ("extra", 1)):
        before = model["encoder"].get(key)
        model["encoder"][key] = value
        refuses(key if key == "extra" else "")
        model["encoder"] = {k: v for k, v in model["encoder"].items() if k != key}
        model["encoder"] |= {} if before is None else {key: before}
    open_sequence(folder, VOCABULARY, None)
    tensors = folder.weights.stored
    for name, tensor in list(tensors.items()):
        tensors[name] = StoredTensor(tensor[:-1])
        refuses(name)
        tensors[name] = tensor


def test_weights_that_are_no_numbers_are_said(tmp_path: Path) -> None:
    folder = stored(tmp_path)
    name, weight = next(iter(folder.weights.items()))
    weight.flat[0] = np.nan
    folder.weights.stored[name] = StoredTensor(weight)
    with pytest.raises(UserError, match="NaN"):
        Translator.open(folder)


# Without PyTorch, every verb

WITHOUT = """
import sys
sys.modules["torch"] = None  # importing it is an error, as where it is not installed
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "torch" else real(name, *rest)
from saccade.cli.main import main
for words in {commands!r}:
    try:
        main(words)
    except SystemExit as ended:
        print("exit", ended.code, words[0], flush=True)
"""
KEPT = Path(__file__).parent / "kept"


def without_pytorch(commands: list[list[str]], **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(commands=commands)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
    )


def verbs(folder: Path) -> list[list[str]]:
    (folder / "pairs.tsv").write_text("cat\tcats\ndog\tdogs\n")
    picture = str(folder / "look.png")
    return [
        ["translate", "we are eating bread"],
        ["translate", "we are eating bread", "--look", picture],
        ["translate", "we are eating bread", "--model", "en-es-rnn", "--look=-"],
        ["translate", "one", "--temperature", "0.8", "--seed", "1"],
        ["correct", "teh cat", "--look=-"],
        ["pronounce", "cat", "--look=-"],
        ["complete", "one day", "--max-tokens", "5", "--seed", "1"],
        ["complete", "one day", "--max-tokens", "5", "--seed", "1", "--look=-"],
        ["score", "one day"],
        ["prompt", "--examples", str(folder / "pairs.tsv"), "--input", "fox"],
        ["fill", "the cat sat on the [MASK]", "--look=-"],
        ["tag", "the cat sat", "--look=-"],
        ["walk", "turn left twice and jump", "--look=-"],
        ["classify", "one cat", "--model", str(KEPT / "classification"), "--look=-"],
        ["run", "en-es", "one"],
        ["look", "en-es", "one", "-o", picture],
        ["models"],
        ["show", "en-es"],
        ["data"],
        ["doctor", "en-es"],
    ]


@pytest.mark.parametrize("native", ["1", "0"])
def test_every_verb_answers_without_pytorch(tmp_path: Path, native: str) -> None:
    commands = verbs(tmp_path)
    done = without_pytorch(commands, SACCADE_NATIVE=native)
    ends = [line for line in done.stdout.splitlines() if line.startswith("exit ")]
    assert ends == [f"exit 0 {words[0]}" for words in commands], done.stdout + done.stderr
    assert (tmp_path / "look.png").stat().st_size > 10_000


def test_what_needs_pytorch_says_what_to_install(tmp_path: Path) -> None:
    commands = [
        ["train", "en-es", "--out", str(tmp_path / "run")],
        ["evaluate", "en-es"],
        ["run", str(KEPT / "convolution"), "one"],
        ["run", str(KEPT / "permuted"), "one [MASK]"],
    ]
    done = without_pytorch(commands)
    lines = done.stderr.splitlines()
    assert len(lines) == len(commands), done.stderr
    assert all("[train]" in line and line.startswith("saccade: ") for line in lines), done.stderr
    assert "kind = 'convolution'" in lines[2]
    assert [line for line in done.stdout.splitlines() if line.startswith("exit 0")] == []
    assert not (tmp_path / "run").exists()


def test_answering_does_not_wait_for_pytorch() -> None:
    """Where it is installed, no answer imports it."""
    script = "import sys\nfrom saccade.cli.main import main\ntry:\n    main(['fill', 'a [MASK]'])\n"
    script += "finally:\n    print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.splitlines()[-1] == "False", done.stdout + done.stderr


def test_a_model_is_not_held_twice() -> None:
    """What the kernels packed is not kept in float32 beside it."""
    if native.kernels() is None:
        pytest.skip(f"no C kernels: {native.why_not()}")
    stack = StackConfig(layers=2, width=128, heads=2, feedforward=512)
    config = EncoderDecoderConfig(encoder=stack, decoder=stack)
    described, random = config.weights(2000), np.random.default_rng(0)
    tensors = {
        name: StoredTensor(random.integers(-127, 128, weight.shape, dtype=np.int8), np.ones((weight.shape[0], 1)))
        if len(weight.shape) == 2
        else StoredTensor(np.ones(weight.shape, dtype=np.float32))
        for name, weight in described.items()
    }
    tracemalloc.start()
    try:
        runtime = SequenceRuntime(config, StoredTensors(tensors), "int16")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert runtime.choice.engine == "kernels"
    assert held < 1.3 * 2 * parameters(described)  # two bytes each
