"""Model folders: what is stored comes back, up to the rounding of its storage."""

import hashlib
import json
import lzma
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from saccade import folder as folders
from saccade.errors import UserError
from saccade.folder import WORDS, read_folder
from saccade.weights import write_folder


def stored(weight: Tensor, folder: Path) -> Tensor:
    """A matrix, after it was written as int8 and read again."""
    model = nn.Linear(*reversed(weight.shape), bias=False)
    model.weight = nn.Parameter(weight)
    write_folder(folder, {"task": "none", "model": {}}, model, "{}", storage="int8")
    return torch.from_numpy(read_folder(folder).weights["weight"])


def test_int8_is_off_by_half_a_step_at_most_and_by_nothing_the_second_time(tmp_path: Path) -> None:
    weight = torch.randn(2000, 40) * torch.logspace(-6, 3, 2000)[:, None]
    once = stored(weight, tmp_path / "once")
    step = weight.abs().amax(dim=1, keepdim=True) / 127
    # A scale has eight bits: a step is up to 1/256 larger or smaller than the row asks.
    assert ((once - weight).abs() <= 0.51 * step).all()
    assert torch.equal(stored(once, tmp_path / "again"), once)


def with_words(path: Path, words: list[str] | None) -> Path:
    write_folder(path, {"task": "none", "model": {}}, nn.Linear(2, 2), "{}", storage="float32", words=words)
    return path


@pytest.mark.parametrize("words", [None, [], ["a", "don't", "été"]])
def test_a_list_of_words_comes_back(tmp_path: Path, words: list[str] | None) -> None:
    assert read_folder(with_words(tmp_path, words)).words == words


def reseal(path: Path, content: bytes) -> None:
    """Another list of words, with a digest that fits."""
    (path / WORDS).write_bytes(content)
    config = json.loads((path / "config.json").read_text())
    config["sha256"][WORDS] = hashlib.sha256(content).hexdigest()
    config["sha256"]["config.json"] = folders.digest_of(config)
    (path / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    "content", [b"", b"no xz", lzma.compress(b"\xff\xfe"), lzma.compress(b"word")[:-8], lzma.compress(b"x" * 5000)]
)
def test_a_damaged_list_is_refused_in_one_line(tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "LARGEST_LIST", 1000)
    reseal(with_words(tmp_path, ["word"]), content)
    with pytest.raises(UserError, match=WORDS) as caught:
        read_folder(tmp_path)
    assert "\n" not in str(caught.value)
