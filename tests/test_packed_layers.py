"""Large models: mapped from their file, packed layers from the cache, and the same numbers as when all is read."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from saccade import cache, native, tensors
from saccade.arch.gpt import GptConfig
from saccade.errors import UserError
from saccade.folder import FORMAT, digest_of, read_folder
from saccade.runtime.open import LanguageRuntime
from saccade.runtime.packed_layers import PackedLayers

CONFIG = GptConfig(layers=2, width=64, heads=4, feedforward=96, context=32)
VOCABULARY = 300
TOKENS = np.arange(5, 17)[None]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache's folder; and every file counts as large."""
    if native.kernels() is None:
        pytest.skip(f"no C kernels: {native.why_not()}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("saccade.folder.LARGE", 0)
    return tmp_path / "saccade"


def write_model(path: Path, *, spoilt: bool = False, seed: int = 0) -> Path:
    random = np.random.default_rng(seed)
    stored = {
        name: random.standard_normal(weight.shape).astype(np.float32)
        for name, weight in CONFIG.weights(VOCABULARY).items()
        if weight.same_as is None
    }
    if spoilt:
        next(iter(stored.values())).flat[3] = np.inf
    path.mkdir(exist_ok=True)
    files = {"model.safetensors": save(stored), "tokenizer.json": b"{}"}
    for name, content in files.items():
        (path / name).write_bytes(content)
    config = {"format": FORMAT, "storage": "float32", "task": "language", "model": CONFIG.table()}
    config["sha256"] = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    config["sha256"]["config.json"] = digest_of(config)
    (path / "config.json").write_text(json.dumps(config))
    return path


def logits(path: Path, how: str = "int8") -> np.ndarray:
    runtime = LanguageRuntime(CONFIG, read_folder(path).tensors(CONFIG.weights(VOCABULARY)), how)  # type: ignore[arg-type]
    decoder = runtime.decoder
    return decoder.extend(TOKENS, np.array([TOKENS.shape[1]]), decoder.start(None, 1), every=True)[0]


def packed_files(home: Path) -> list[Path]:
    return [path for path in home.glob("packed-*") if path.suffix != ".lock"]


@pytest.mark.parametrize("how", ["int8", "int16", "exact"])
def test_mapped_and_cached_is_read_and_packed_bit_for_bit(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    path = write_model(tmp_path / "model")
    first, second = logits(path, how), logits(path, how)
    assert len(packed_files(home)) == (how != "exact")
    monkeypatch.setattr("saccade.folder.LARGE", tensors.LARGE)
    read = logits(path, how)
    assert np.array_equal(first, read)
    assert np.array_equal(second, read)


def test_the_second_start_packs_nothing(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_model(tmp_path / "model")
    expected = logits(path)

    def refuse(*_: object) -> None:
        raise AssertionError("packed again, or digested again")

    monkeypatch.setattr("saccade.runtime.packing.Packed.of", refuse)
    monkeypatch.setattr(hashlib, "file_digest", refuse)
    assert np.array_equal(logits(path), expected)


def test_layers_of_another_arithmetic_stay_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """int16 may pack one layer in int8 beside the others: neither way of loading undoes what the other kept."""
    weights = read_folder(write_model(tmp_path / "model")).tensors(CONFIG.weights(VOCABULARY)).below("decoder")
    names = ["head", "blocks.0.feedforward.widen"]
    for some in (names[:1], names):
        layers = PackedLayers(weights)
        for name in some:
            layers.layer(name, 8)
        layers.keep()
    monkeypatch.setattr("saccade.runtime.packing.Packed.of", None)
    layers = PackedLayers(weights)
    assert [layers.layer(name, 8).bits for name in names] == [8, 8]


def test_models_do_not_share_what_is_packed(tmp_path: Path, home: Path) -> None:
    one, other = (logits(write_model(tmp_path / f"model-{seed}", seed=seed)) for seed in (1, 2))
    assert not np.array_equal(one, other)
    assert len(packed_files(home)) == 2


@pytest.mark.parametrize("damage", ["cut", "emptied", "swapped", "other bytes"])
def test_damaged_packed_layers_are_packed_again(tmp_path: Path, home: Path, damage: str) -> None:
    path = write_model(tmp_path / "model")
    expected = logits(path)
    (file,) = packed_files(home)
    content = file.read_bytes()
    if damage == "swapped":
        content = (cache.folder() / "other").read_bytes() if cache.write("other", content[:5000]) else b""
    if damage == "other bytes":
        content = bytes([content[0] ^ 255]) + content[1:]
    file.write_bytes({"cut": content[:-100], "emptied": b""}.get(damage, content))
    assert np.array_equal(logits(path), expected)


def test_without_a_cache_it_answers_all_the_same(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_model(tmp_path / "model")
    expected = logits(path)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert np.array_equal(logits(path), expected)


def test_a_changed_file_is_noticed_though_it_was_checked_before(tmp_path: Path, home: Path) -> None:
    path = write_model(tmp_path / "model")
    logits(path)
    file = path / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    with pytest.raises(UserError, match=r"damaged: its SHA-256"):
        logits(path)
    file.write_bytes(content[:1000])
    with pytest.raises(UserError, match=r"damaged: its SHA-256"):
        logits(path)


def test_infinite_weights_of_a_mapped_file_are_said_every_time(tmp_path: Path, home: Path) -> None:
    path = write_model(tmp_path / "model", spoilt=True)
    for _ in range(2):
        with pytest.raises(UserError, match="NaN or infinite"):
            logits(path)


def test_a_mapped_model_is_in_memory_once(tmp_path: Path) -> None:
    """A process that packs a model of 60 MB from its file holds the packed layers, and little else."""
    script = f"""
import sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from saccade import folder, native
from saccade.arch.gpt import GptConfig
from tests import test_packed_layers as tested
folder.LARGE = 0
tested.CONFIG, tested.VOCABULARY = GptConfig(layers=6, width=384, heads=6, feedforward=1536, context=32), 12_000

def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) / 1024

path = Path({str(tmp_path / "large")!r})
if sys.argv[1] == "write":
    tested.write_model(path)
else:
    native.kernels()
    before = peak()
    tested.logits(path)
    print(peak() - before)
"""
    for step in ("write", "run", "run"):
        done = subprocess.run([sys.executable, "-c", script, step], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    parameters = (tmp_path / "large" / "model.safetensors").stat().st_size / 4
    assert float(done.stdout) < 1.3 * parameters / 2**20 + 10
