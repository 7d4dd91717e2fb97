"""What a plan promises: the papers' figures, sums that add up, layouts that are refused with numbers."""

import json
from pathlib import Path

import pytest

from saccade.arch.weights import flops
from saccade.errors import WrongUse
from saccade.plan.budget import affordable
from saccade.plan.choose import best_layout, least_devices
from saccade.plan.compute import forward_by_part, forward_per_token, petaflop_days, training_flops
from saccade.plan.devices import DEVICES
from saccade.plan.layout import Layout, insist
from saccade.plan.memory import activations_of_block, insist_it_fits, memory_of
from saccade.plan.plan import Plan, Wishes
from saccade.plan.published import PUBLISHED, TABLE_D1, TableD1
from saccade.plan.steps import step_time
from saccade.plan.subject import Subject
from saccade.presets.rows import PRESETS
from tiny import ask


def subject(name: str) -> Subject:
    return Subject.of(PRESETS[name])


# The papers' figures


def test_gopher_is_the_price_and_the_utilisation_of_the_lecture() -> None:
    said = ask(*["plan", "gopher", "--device", "tpu-v3", "--count", "4096", "--hours", "920", "--price", "1.00"])
    assert said.code == 0
    assert "$3,768,320 at $1.00 an hour" in said.out
    assert "37.8 % as the paper counts" in said.out


def printed(number: float, like: str) -> str:
    """A number with as many digits as the table prints."""
    digits = 3
    return f"{float(f'{number:.{digits}g}'):g}" if "." not in like else f"{number:.{len(like.partition('.')[2])}f}"


@pytest.mark.parametrize("row", TABLE_D1, ids=lambda row: row.title)
def test_every_row_of_table_d1_to_the_printed_digit(row: TableD1) -> None:
    assert printed(petaflop_days(row.flops), row.petaflop_days) == row.petaflop_days
    if row.preset:
        count = PRESETS[row.preset].parameters
        # The table rounds to a million, and above a billion to ten millions.
        size = 1e6 if row.millions < 1000 else 1e7
        assert round(count / size) * size == row.millions * 1e6


@pytest.mark.parametrize("run", PUBLISHED, ids=lambda run: run.title)
def test_the_step_time_model_is_near_published_runs(run: object) -> None:
    assert abs(getattr(run, "error")) < 0.2  # noqa: B009


# Sums that add up


@pytest.mark.parametrize("name", PRESETS)
def test_parts_add_up(name: str) -> None:
    one = subject(name)
    parts = forward_by_part(one)
    inside = sum(cost for part, cost in parts.items() if "attention weights" not in part)
    assert inside == pytest.approx(flops(one.weights, one.counts))
    assert training_flops(one, one.tokens) == pytest.approx(3 * sum(parts.values()))
    assert training_flops(one, 1e9, checkpointing="full") == pytest.approx(4e9 * forward_per_token(one))


def test_six_n_d_is_near_the_count_of_a_large_model() -> None:
    one = subject("gpt3")
    assert 6 * one.parameters / (3 * forward_per_token(one)) == pytest.approx(1, abs=0.02)


def test_a_block_of_activations_is_that_of_the_paper() -> None:
    """34 T d bytes without attention weights, and T d (10 + 24 / t) among t devices (Korthikanti et al. 2022, 4)."""
    changes = [("model.dropout", 0.1)]
    stack = Subject.of(PRESETS["gpt3"].changed(changes)).stacks[0]
    each = stack.length * stack.width
    assert activations_of_block(stack) == 34 * each
    for tensor in (2, 8):
        assert activations_of_block(stack, tensor) == pytest.approx(each * (10 + 24 / tensor))


def test_mixed_precision_takes_sixteen_bytes_a_weight() -> None:
    one = subject("gpt2-xl")
    memory = memory_of(one, Layout())
    assert memory.weights + memory.gradients + memory.optimizer == 16 * one.parameters


def test_shards_divide_all_but_the_blocks_at_work() -> None:
    one = subject("gpt2-xl")
    whole, shared = memory_of(one, Layout()), memory_of(one, Layout(sharded=8))
    for part in ("weights", "gradients", "optimizer"):
        assert getattr(shared, part) == getattr(whole, part) / 8
    assert shared.activations == whole.activations
    assert 0 < shared.gathered < whole.weights / 10


def test_computing_blocks_again_saves_memory_and_costs_a_third() -> None:
    one, device = subject("gpt2-xl"), DEVICES["a100"]
    plain, again = Layout(), Layout(checkpointing="full")
    assert memory_of(one, again).activations < memory_of(one, plain).activations / 8
    seconds = [step_time(one, layout, device, 8).compute for layout in (plain, again)]
    assert seconds[1] / seconds[0] == pytest.approx(4 / 3)


def test_keys_and_values_are_two_vectors_a_layer() -> None:
    plan = Plan(subject("llama2-70b"), DEVICES["a100"])
    assert plan.cache_per_token == 2 * 80 * 8 * 128 * 2


def test_more_devices_take_less_time_and_more_waiting() -> None:
    one = subject("megatron-8b")
    plans = [Plan(one, DEVICES["v100"], Wishes(count=count)) for count in (64, 512)]
    assert plans[1].hours < plans[0].hours
    assert plans[1].utilisation["part by part"] <= plans[0].utilisation["part by part"]


def test_money_tokens_and_days_are_one_question() -> None:
    device = DEVICES["v100"].model_copy(update={"price": 2.0})
    found = affordable(device, hours=5000, dollars=10_000)
    assert found.flops == pytest.approx(6 * found.parameters * found.tokens)
    assert found.tokens == pytest.approx(20 * found.parameters)
    said = ask("plan", "--budget", "10000", "--device", "v100", "--price", "2", "--format", "json")
    assert json.loads(said.out)["parameters"] == pytest.approx(found.parameters)
    words = "plan gpt2 --budget 10000 --device v100 --price 2 --count 8 --format json"
    plan = json.loads(ask(*words.split()).out)
    assert plan["dollars"] == pytest.approx(10_000, rel=0.01)
    assert plan["hours"] == pytest.approx(5000 / 8, rel=0.01)


# Layouts


def test_the_least_number_of_devices_is_the_least() -> None:
    one, device = subject("gpt3-13b"), DEVICES["a100"]
    count = least_devices(one, device)
    insist_it_fits(one, best_layout(one, device, count, 512), device)
    with pytest.raises(WrongUse, match=f"{count} are enough"):
        best_layout(one, device, count // 2, 512)


@pytest.mark.parametrize(
    ("name", "layout", "told"),
    [
        ("gpt2-xl", {"tensor": 2}, "25 attention heads of the decoder do not divide among 2 devices"),
        ("gpt2", {"tensor": 5}, "12 attention heads of the decoder do not divide among 5 devices"),
        ("llama2-70b", {"tensor": 16}, "8 heads of keys and values do not divide among 16 devices"),
        ("gpt2", {"pipeline": 16}, "16 stages, but only 12 layers"),
        ("gpt2", {"pipeline": 5}, "12 layers do not divide into 5 stages"),
    ],
)
def test_a_layout_that_cannot_be_is_refused_with_the_numbers(name: str, layout: dict[str, int], told: str) -> None:
    with pytest.raises(WrongUse, match=told):
        insist(subject(name), Layout.model_validate(layout))


def test_a_batch_that_does_not_divide_is_refused() -> None:
    with pytest.raises(WrongUse, match="a batch of 10 texts does not divide into 4 x 2 at once"):
        insist(subject("gpt2"), Layout(data=4, micro_batch=2), batch=10)


def test_too_little_memory_is_refused_with_the_numbers() -> None:
    said = ask("plan", "gpt3", "--layout", "data=8", "--device", "v100")
    assert said.code == 2
    assert "2,8" in said.err
    assert "GB on each v100, which has 32 GB" in said.err


@pytest.mark.parametrize("layout", ["tensor", "tensor=", "tensor=x", "threads=2"])
def test_a_layout_that_cannot_be_read_is_one_clear_line(layout: str) -> None:
    said = ask("plan", "gpt2", "--layout", layout)
    assert said.code == 2
    assert len(said.err.splitlines()) == 1


# The command


def test_the_lectures_table_is_one_command(tmp_path: Path) -> None:
    said = ask("plan", "lectures", "--format", "markdown")
    rows = [line for line in said.lines if line.startswith("| ")]
    presets = [preset for preset in PRESETS.values() if preset.lectures]
    assert len(rows) == 2 + len(presets)
    for preset, row in zip(presets, rows[2:], strict=True):
        assert row.startswith(f"| {preset.title}")
        assert f"{preset.parameters:,}" in row
    for name in ("table.png", "table.svg", "table.html", "table.md", "table.json"):
        assert ask("plan", "lectures", "-o", tmp_path / name).code == 0
        assert (tmp_path / name).stat().st_size > 3000
    page = (tmp_path / "table.html").read_text("utf-8")
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert page.count("<svg") == len(presets)


@pytest.mark.parametrize("name", [*PRESETS, "en-es", "en-es-rnn", "shakespeare", "bert-mini", "digits"])
def test_everything_can_be_planned(name: str) -> None:
    said = ask("plan", name, "--format", "json")
    assert said.code == 0, said.err
    record = json.loads(said.out)
    assert record["parameters"] > 0
    assert record["hours"] > 0
    assert record["memory_bytes"]["total"] > 0


def test_a_device_of_ones_own() -> None:
    words = (
        "plan gpt2 --device a100 --set device.memory=20 --set device.teraflops=100 --set model.layers=6 --format json"
    )
    record = json.loads(ask(*words.split()).out)
    assert record["device"]["memory"] == 20
    assert record["device"]["teraflops"] == 100
    assert record["parameters"] < PRESETS["gpt2"].parameters


def test_presets_and_devices_are_listed() -> None:
    said = ask("plan")
    assert all(name in said.out for name in (*PRESETS, *DEVICES))
    assert "512 V100" in ask("plan", "--format", "markdown").out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("plan gpt2-xll", "did you mean gpt2-xl?"),
        ("plan gpt2 --device a1000", "did you mean a100?"),
        ("plan gpt2 --hours 1 --days 1", "say the same"),
        ("plan gpt2 --tokens -5", "tokens"),
        ("plan gpt2 --set train.steps=5", "keys of the model"),
        ("plan gpt2 --set model.heads=7", "does not divide into 7 heads"),
        ("plan gpt3 --count 8", "64 are enough"),
        ("plan --budget 100 --device h100", "no price of h100 is known"),
        ("plan gpt2 -o plan.pdf", "plans are written as"),
    ],
)
def test_wrong_use_is_one_clear_line(words: str, told: str) -> None:
    said = ask(*words.split())
    assert said.code == 2
    assert told in said.err
    assert len(said.err.splitlines()) == 1
