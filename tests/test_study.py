"""Experiments over whole runs: what they measure is what they say they measure."""

import json
import math
from pathlib import Path

import pytest
import torch

from saccade.config import to_toml
from saccade.nn.pooling import AttentionPooling, Gaussian, average_pool, kernel_regression
from saccade.nn.scores import Dot
from saccade.study import anatomy, bottleneck
from saccade.study.anatomy import BLOCKS, gradient_reach, measure_layer, path_lengths, saturation
from tiny import ask

PNG = b"\x89PNG\r\n\x1a\n"
RNN = {"kind": "recurrent", "width": 16, "embed": 16}


# Pooling


def test_kernel_regression_is_the_formula_of_nadaraya_and_watson() -> None:
    x, y, at = torch.rand(7), torch.rand(7), torch.tensor([0.2, 0.9])
    found = kernel_regression(x, y, at, sharpness=3.0)
    for place, value in zip(at.tolist(), found.tolist(), strict=True):
        kernels = [math.exp(-((3.0 * (place - one)) ** 2) / 2) for one in x.tolist()]
        expected = sum(k * v for k, v in zip(kernels, y.tolist(), strict=True)) / sum(kernels)
        assert value == pytest.approx(expected, abs=1e-5)


def test_without_a_preference_attention_pooling_is_average_pooling() -> None:
    keys, values = torch.randn(2, 5, 3), torch.randn(2, 5, 4)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    blind = AttentionPooling(Dot())(torch.zeros(2, 1, 3), keys, values, mask)[:, 0]
    torch.testing.assert_close(blind, average_pool(values, mask))
    asked = AttentionPooling(Dot())(10 * keys[:, 1:2], keys, values, mask)[:, 0]
    assert not torch.allclose(asked, blind), "a query changes what is seen"


def test_the_sharper_the_kernel_the_nearer_the_nearest_value() -> None:
    x, y = torch.tensor([0.0, 1.0]), torch.tensor([5.0, 7.0])
    values = [float(kernel_regression(x, y, torch.tensor([0.1]), sharpness)) for sharpness in (0.0, 1.0, 20.0)]
    assert values[0] == pytest.approx(6.0)
    assert values[0] > values[1] > values[2]
    assert values[2] == pytest.approx(5.0)
    assert Gaussian(2.0)(torch.zeros(1, 1), torch.ones(1, 1)).item() == pytest.approx(-2.0)


def test_pooling_is_drawn(tmp_path: Path) -> None:
    said = ask("compare", "--pooling", "-o", tmp_path)
    assert (said.code, said.out.strip()) == (0, str(tmp_path / "pooling.png"))
    assert (tmp_path / "pooling.png").read_bytes().startswith(PNG)


# Anatomy


def test_costs_are_measured_for_every_layer() -> None:
    for name in anatomy.KINDS:
        costs = measure_layer(name, (16, 32))
        assert [cost.length for cost in costs] == [16, 32]
        assert all(cost.forward > 0 and cost.backward > 0 and cost.peak >= 0 for cost in costs)
        assert [cost.calls for cost in costs] == ([16, 32] if name == "recurrent" else [1, 1])


def test_gradients_vanish_explode_and_reach() -> None:
    reach = {name: dict(line) for name, line in gradient_reach().items()}
    assert reach["tanh, W scaled by 0.9"][200] < 1e-6 * reach["tanh, W scaled by 0.9"][0]
    assert reach["tanh, W scaled by 1.1"][200] > 10 * reach["tanh, W scaled by 1.1"][0]
    assert set(reach[f"convolution, k = {anatomy.KERNEL}"]) == {0.0, 1.0}, "it sees its neighbours only"
    attention = reach["self-attention"]
    assert min(attention.values()) > 1e-3 * max(v for k, v in attention.items() if k > 0)


def test_paths_are_as_long_as_theory_says() -> None:
    for length, layers in path_lengths()["dilated"]:
        assert layers == math.ceil(math.log(length, anatomy.KERNEL))
    for length, layers in path_lengths()["convolution"]:
        assert layers == math.ceil((length - 1) / (anatomy.KERNEL - 1))


def test_without_the_scale_softmax_saturates() -> None:
    entropy, slope = saturation()
    plain, scaled = dict(entropy["q·k"]), dict(entropy["q·k / √d"])
    assert plain[1024] < 0.6 < 4 < scaled[1024]
    assert abs(scaled[1024] - scaled[16]) < 0.5, "scaled, the width does not matter"
    assert dict(slope["q·k"])[1024] < dict(slope["q·k / √d"])[1024]


def test_the_whole_anatomy_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anatomy, "LENGTHS", (16, 32))
    monkeypatch.setattr(anatomy, "STEPS", 10)
    monkeypatch.setattr(anatomy, "_apart", lambda name: measure_layer(name, (16, 32)))
    said = ask("compare", "--anatomy", "-o", tmp_path, "--quiet")
    assert said.code == 0
    text = (tmp_path / "anatomy.md").read_text(encoding="utf-8")
    assert "n²·d = 6.55e+04" in text
    assert f"{BLOCKS} blocks" in text
    assert (tmp_path / "anatomy.png").read_bytes().startswith(PNG)


# The bottleneck


def test_the_bottleneck_is_measured(tmp_path: Path) -> None:
    said = ask("compare", "--bottleneck", "--budget", "2s", "-o", tmp_path, "--quiet")
    assert said.code == 0
    found = json.loads((tmp_path / "bottleneck.json").read_text(encoding="utf-8"))
    assert set(found) == {"fixed vector", "attention"}
    assert (tmp_path / "bottleneck.png").read_bytes().startswith(PNG)


def test_a_sequence_backwards_is_backwards() -> None:
    batch = bottleneck.backwards(6, 24)
    assert torch.equal(batch.labels_BT[:, :-1], batch.source[:, :-1].flip(1))
    assert torch.equal(batch.target_BT[:, 1:], batch.labels_BT[:, :-1])


# Comparing recipes


def write_recipe(folder: Path, name: str, model: dict[str, object]) -> Path:
    words = ["one", "two", "three", "four", "five", "six", "seven"]
    lines = [" ".join(words[(i * k) % 7] for k in range(1, 3 + i % 4)) for i in range(120)]
    pairs = "".join(f"{line}\t{line.upper()}\n" for line in lines)
    for part in ("train", "valid", "test"):
        (folder / f"{part}.tsv").write_text(pairs, encoding="utf-8")
    recipe = {
        "task": "translation",
        "name": name,
        "data": {part: [str(folder / f"{part}.tsv")] for part in ("train", "valid", "test")},
        "tokens": {"vocabulary": 300},
        "model": model,
        "train": {"steps": 1000, "batch_tokens": 256, "warmup": 5},
    }
    path = folder / f"{name}.toml"
    path.write_text(to_toml(recipe), encoding="utf-8")
    return path


def test_recipes_are_compared_and_a_failing_one_loses_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.study.compare.LEAST_SECONDS", 0.1)
    recipes = [
        write_recipe(tmp_path, "attention", {"encoder": RNN, "decoder": RNN}),
        write_recipe(tmp_path, "blind", {"encoder": RNN, "decoder": RNN | {"attention": "none", "context": "none"}}),
        write_recipe(tmp_path, "broken", {"encoder": RNN | {"width": 12}, "decoder": RNN | {"attention": "dot"}}),
    ]
    out = tmp_path / "out"
    command = ("compare", *recipes, "--budget", "1s", "-o", out, "--sentence", "one two three", "--quiet")
    said = ask(*command)
    assert said.code == 1, "one of them failed"
    assert "broken failed" in said.err
    assert said.err.count("failed") == 1, said.err
    assert "16 wide" in said.err
    text = (out / "report.md").read_text(encoding="utf-8")
    assert all(name in text for name in ("attention", "blind", "broken failed"))
    for picture in ("curves.png", "attention.png"):
        assert (out / picture).read_bytes().startswith(PNG)
    numbers = {row["recipe"]: row for row in json.loads((out / "report.json").read_text(encoding="utf-8"))}
    assert set(numbers) == {"attention", "blind"}
    for row in numbers.values():
        assert row["steps"] == max(1, round(1.0 / row["seconds_per_step"]))
        assert row["peak_bytes"] > 50 * 2**20
        assert row["training_tokens_per_second"] > 0
        assert len(row["by_length"]) == 5

    plan = json.loads((out / "compare.json").read_text(encoding="utf-8"))
    again = ask(*command)
    assert again.code == 1
    assert json.loads((out / "compare.json").read_text(encoding="utf-8")) == plan, "the same comparison"
    other = ask("compare", *recipes, "--budget", "2s", "-o", out)
    assert other.code == 2
    assert "budget of 1 s" in other.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "two or more recipes"),
        (("multi30k-de-en-gru",), "two recipes or more"),
        (("--anatomy", "--pooling"), "or one of"),
        (("a", "b", "--budget", "10"), "90s, 10m or 1.5h"),
        (("a", "b", "--budget", "0m"), "90s, 10m or 1.5h"),
        (("multi30k-de-en-gruu", "multi30k-de-en-lstm"), "did you mean multi30k-de-en-gru"),
    ],
)
def test_wrong_use_is_said_in_a_line(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    said = ask("compare", *arguments, "-o", tmp_path / "out")
    assert said.code == 2
    assert words in said.err
    assert said.err.count("\n") == 1
