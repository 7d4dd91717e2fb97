"""The device is chosen once; what is not there is one clear line, and a batch goes as a whole."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from conftest import small_model
from saccade.errors import UserError
from saccade.train.device import choose_device, moved, on_device, to_answer
from tiny import ask, insist_one_line
from toy_trainings import write_toy


def test_auto_takes_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for cuda in (False, True):
        for mps in (False, True):
            monkeypatch.setattr(torch.cuda, "is_available", lambda there=cuda: there)
            monkeypatch.setattr(torch.backends.mps, "is_available", lambda there=mps: there)
            found[cuda, mps] = choose_device("auto").type
            assert choose_device("cpu").type == "cpu"
    assert found == {(False, False): "cpu", (False, True): "mps", (True, False): "cuda", (True, True): "cuda"}


def test_a_device_that_is_not_there_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    recipe = write_toy(tmp_path)
    said = ask("train", recipe, "--data", tmp_path, "--out", tmp_path / "run", "--device", "cuda", "--quiet")
    insist_one_line(said, 1, ["--device cuda", "it has cpu", "auto"])
    assert not (tmp_path / "run").exists()
    with pytest.raises(UserError, match="no such device"):
        choose_device("cuda")


@dataclass(frozen=True)
class Inner:
    parts: tuple[Tensor, ...]
    named: dict[str, Tensor]


@dataclass(frozen=True)
class Outer:
    tokens_BT: Tensor
    mask_BT: Tensor | None
    inner: Inner
    indices: np.ndarray


def test_all_tensors_of_a_batch_move() -> None:
    tensor = torch.zeros(2)
    batch = Outer(tensor, None, Inner((tensor, tensor), {"a": tensor}), np.arange(2))
    # PyTorch's device without memory: nothing is computed there, but where a tensor is can be asked.
    found = moved(batch, torch.device("meta"))
    tensors = [found.tokens_BT, *found.inner.parts, found.inner.named["a"]]
    assert [one.device.type for one in tensors] == ["meta"] * 4
    assert found.mask_BT is None
    assert found.indices is batch.indices


def test_a_model_in_main_memory_is_not_copied() -> None:
    model = small_model()
    before = [weight.data_ptr() for weight in model.parameters()]
    with on_device(model, torch.device("cpu")):
        assert to_answer(model) is model
    assert [weight.data_ptr() for weight in model.parameters()] == before
