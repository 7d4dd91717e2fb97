"""The comparisons of language models and encoders: what engines are asked, and what is counted; none is timed."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bench import __main__ as command
from bench import bert, contest, gpt, measuring
from bench.contest import OWN, Contestant, Measured, add_figures, best_settings, cells, own_settings, share
from bench.machine import Machine
from bench.readers import contract as reading
from bench.readers import saccade as reader
from bench.readers.same import least_cosine
from bench.roofline import FLOAT32, INT8, INT8_WIDENED, INT16, Work, least_milliseconds
from bench.settings import Settings
from bench.stored import draw_weights, write_random
from bench.writers import contract as writing
from bench.writers import saccade as writer
from bench.writers.contract import SHAPES, Shape

from saccade.arch.bert import BertConfig
from saccade.arch.gpt import GptConfig
from saccade.arch.heads import pooler
from saccade.arch.positions import LearnedConfig, RotaryConfig
from saccade.arch.weights import parameters
from saccade.models.bert import Bert
from saccade.models.gpt import LanguageModel, build_gpt
from saccade.runtime.contract import Booleans, Floats, How, Ids
from saccade.runtime.open import Choice

VOCABULARY = 60
SMALL = {"layers": 2, "width": 16, "heads": 4, "feedforward": 24, "context": 32}
TINY = {
    "gpt2": GptConfig(**SMALL, positions=LearnedConfig(length=32)),
    "llama": GptConfig(
        **SMALL,
        key_heads=2,
        gated=True,
        activation="silu",
        norm="rms",
        bias=False,
        positions=RotaryConfig(layout="halves"),
    ),
}
TINY_BERT = BertConfig(**SMALL, positions=LearnedConfig(length=32))


def tiny_gpt(name: str) -> LanguageModel:
    model = build_gpt(TINY[name], VOCABULARY).eval()
    draw_weights(model)
    return model


def machine_with(**limits: float) -> Machine:
    machine = Machine(2)
    machine.limits |= {"instructions": "AVX2", "torch": "2"} | limits
    return machine


# Shapes are the published ones


def test_gpt2_and_bert_have_the_published_numbers_of_weights() -> None:
    assert SHAPES["gpt2"].parameters == 124_439_808
    encoder = reading.SIZES["bert-base"].weights(reading.VOCABULARY)
    assert parameters(encoder) + parameters(pooler(768)) == 109_482_240


def test_llama_has_about_as_many() -> None:
    assert (
        SHAPES["llama"].parameters == 32_000 * 768 + 12 * (2 * 768**2 + 2 * 768 * 256 + 3 * 768 * 2048 + 2 * 768) + 768
    )


def test_all_weights_but_vectors_are_multiplied_for_every_token() -> None:
    shape = SHAPES["gpt2"]
    # 12 d² a layer, and the token vectors as the output layer.
    assert shape.matrices == 12 * 12 * 768**2 + 50_257 * 768
    step, batch, prompt = (shape.work(cell) for cell in (writing.ONE, writing.BATCHED, writing.FIRST))
    assert step.multiply_adds == shape.matrices == step.weights
    assert batch.multiply_adds == 16 * step.multiply_adds
    assert batch.other_bytes == 16 * step.other_bytes
    assert prompt.multiply_adds == 512 * 12 * 12 * 768**2 + 50_257 * 768


# What is read and written


def test_lengths_are_drawn_the_same_every_time() -> None:
    lengths = reading.draw_lengths(64)
    assert lengths == reading.draw_lengths(64) == reading.CELLS[reading.MIXED]
    assert (min(lengths), max(lengths)) == (5, 128)
    assert 18 < np.median(lengths) < 30
    assert len(set(lengths)) > 20


def test_tokens_are_drawn_the_same_every_time_and_are_no_marks() -> None:
    shape = SHAPES["gpt2"]
    prompts = writing.draw_prompts(shape, 3, 50)
    assert prompts == writing.draw_prompts(shape, 3, 50)
    assert not {token for prompt in prompts for token in prompt} & set(writing.MARKS.special)
    texts = reading.draw_texts([4, 9])
    assert [len(text) for text in texts] == [4, 9]
    assert texts == reading.draw_texts([4, 9])


def test_every_way_to_read_texts_of_mixed_length_gives_the_same_in_order() -> None:
    shapes = []

    def read(tokens_BT: Ids, mask_BT: Booleans | None) -> Floats:
        shapes.append(tokens_BT.shape)
        real = np.ones(tokens_BT.shape, dtype=bool) if mask_BT is None else mask_BT
        return np.where(real, tokens_BT, -1)[..., None].astype(np.float32)

    texts = reading.draw_texts(reading.draw_lengths(21))
    ways = reading.padded_ways(read)
    assert list(ways) == ["in one batch", "sorted by 16", "sorted by 8", "sorted by 4"]
    for read_texts in ways.values():
        assert [[int(state[0]) for state in states] for states in read_texts(texts)] == texts
    positions = {batch: sum(rows * length for rows, length in shapes[a:b]) for batch, a, b in ((21, 0, 1), (4, 6, 12))}
    assert positions[4] < positions[21]


def test_equally_long_texts_need_no_mask() -> None:
    assert reading.pad([[5, 6], [7, 8]])[1] is None
    tokens, mask = reading.pad([[5, 6], [7]])
    assert mask is not None
    assert mask.tolist() == [[True, True], [True, False]]
    assert tokens.tolist() == [[5, 6], [7, reading.MARKS.pad]]


def test_a_steps_time_leaves_the_prompt_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: clock[0])

    def write(prompts: writing.Prompts, count: int) -> writing.Prompts:
        clock[0] += 5.0 + 0.25 * count
        return []

    assert writing.step_seconds(write, [[1]]) == pytest.approx(0.25)
    assert measuring.seconds_of(lambda: write([[1]], 1)) == pytest.approx(5.25)


def test_an_engine_that_writes_the_end_or_too_little_is_stopped() -> None:
    writing.check("fake", [[7, 8], [9, 7]], 2)
    for wrong in ([[7, 8], [9]], [[7, 8], [9, writing.MARKS.end]]):
        with pytest.raises(SystemExit, match="fake"):
            writing.check("fake", wrong, 2)


def test_memory_is_seen() -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux tells")
    # In a process of its own: here, what other tests gave back would be used again.
    program = (
        "import numpy as np; from bench.resident import resident; before = resident(); kept = np.ones(8_000_000);"
        "after = resident(); print(after.now - before.now, after.peak - after.now)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    grown, above = map(float, said.stdout.split())
    assert grown > 0.9 * 64
    assert above >= -1


# Saccade's engines


@pytest.mark.parametrize("name", TINY)
def test_what_is_written_is_what_the_model_says(name: str, tmp_path: Path) -> None:
    model, shape = tiny_gpt(name), Shape(TINY[name], VOCABULARY)
    write_random(tmp_path / "saccade", TINY[name], model)
    prompts = writing.draw_prompts(shape, 2, 5)
    write = writer.writer(writer.open_runtime(tmp_path, shape, "exact"))
    written = write(prompts, 6)
    for prompt, text in zip(prompts, written, strict=True):
        for place in range(6):
            with torch.no_grad():
                logits = model(torch.tensor([prompt + text[:place]]))[0, -1]
            logits[writing.MARKS.end] = -torch.inf
            assert text[place] == int(logits.argmax())
    assert write(prompts, 2) == [text[:2] for text in written]


def test_saccade_reads_what_the_model_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "VOCABULARY", VOCABULARY)
    model = Bert(TINY_BERT, VOCABULARY).eval()
    draw_weights(model)
    write_random(tmp_path / "saccade", TINY_BERT, model)
    texts = [[7, 9, 11], [8, 20, 21, 22, 30]]
    choice, read = reader.open_encoder(tmp_path, TINY_BERT, "exact")
    assert (choice.engine, choice.how) == ("plain", "exact")
    for read_texts in reader.mixed_ways(read).values():
        for text, states in zip(texts, read_texts(texts), strict=True):
            with torch.inference_mode():
                expected = model(torch.tensor([text])).states_MSD[0].numpy()
            np.testing.assert_allclose(states, expected, atol=1e-5)


def test_ways_that_come_to_the_same_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def known(configs: Any, how: How | None) -> Choice:
        assert how is not None
        return Choice(how, "plain" if how == "exact" else "kernels", "")

    monkeypatch.setattr(contest, "choose", known)
    hows: tuple[How, ...] = ("int8", "int16", "int8", "exact")
    found = list(own_settings("module", TINY["gpt2"], hows, ("--folder", "f"), 2))
    assert [one.program for one in found] == [OWN, "saccade int16", "saccade exact"]
    assert [one.arguments[-1] for one in found] == ["int8", "int16", "exact"]
    assert [one.numbers.weight_bytes for one in found] == [1, 2, 4]
    monkeypatch.setattr(contest, "choose", lambda configs, how: Choice("exact", "plain", "unknown part"))
    (only,) = own_settings("module", TINY["llama"], hows, (), 2)
    assert (only.program, only.setting, only.numbers) == (OWN, "plain, exact", FLOAT32)


# The same weights in other programs


@pytest.mark.parametrize("name", TINY)
def test_hugging_face_writes_the_same(name: str) -> None:
    pytest.importorskip("transformers")
    from bench.hugging_face import as_language_model

    model = tiny_gpt(name)
    tokens = torch.randint(5, VOCABULARY, (2, 9))
    with torch.inference_mode():
        theirs = as_language_model(model, writing.MARKS.end)(tokens).logits
        torch.testing.assert_close(theirs, model(tokens), atol=1e-5, rtol=0)


def test_hugging_face_reads_the_same() -> None:
    pytest.importorskip("transformers")
    from bench.hugging_face import as_bert

    model = Bert(TINY_BERT, VOCABULARY).eval()
    draw_weights(model)
    tokens = torch.randint(5, VOCABULARY, (2, 9))
    with torch.inference_mode():
        theirs = as_bert(model)(tokens).last_hidden_state
        torch.testing.assert_close(theirs, model(tokens).states_MSD, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", TINY)
def test_rounding_for_ctranslate2_leaves_the_model_as_it_was(name: str, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    from bench.convert import write_language

    model = tiny_gpt(name)
    before = {key: weight.clone() for key, weight in model.state_dict().items()}
    write_language(model, [f"w{i}" for i in range(VOCABULARY)], writing.MARKS, tmp_path, "int8")
    assert all(torch.equal(weight, before[key]) for key, weight in model.state_dict().items())


# Limits and ratios


def test_the_limit_is_the_larger_of_reading_and_multiplying() -> None:
    machine = machine_with(gigaflops=100.0, gigabytes=10.0, int16=200.0, int8=400.0)
    step = Work(weights=1e9, multiply_adds=1e9, other_bytes=1e9)
    assert least_milliseconds(step, FLOAT32, machine) == pytest.approx(500)
    assert least_milliseconds(step, INT16, machine) == pytest.approx(300)
    batch = Work(weights=1e9, multiply_adds=1e12)
    assert least_milliseconds(batch, FLOAT32, machine) == pytest.approx(20_000)  # a multiply-add is two operations
    assert least_milliseconds(batch, INT16, machine) == pytest.approx(5_000)
    assert least_milliseconds(batch, INT8, machine) == pytest.approx(2_500)
    assert least_milliseconds(batch, INT8_WIDENED, machine) == pytest.approx(5_000)
    assert least_milliseconds(batch, INT8, machine_with(gigabytes=10.0)) is None


def test_the_best_of_each_limit_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    rest = {"instructions": "AVX2", "torch": "2", "threads": 2}
    looks = iter(
        [
            {"gigaflops": 90.0, "gigabytes": 20.0, "int16": 50.0, "int8": 60.0, **rest},
            {"gigaflops": 80.0, "gigabytes": 25.0, "int16": 55.0, "int8": 0.0, **rest},
        ]
    )
    monkeypatch.setattr("bench.machine.measure_apart", lambda module, threads: next(looks))
    machine = Machine(2).look("one").look("two")
    assert [machine.limits[name] for name in ("gigaflops", "gigabytes", "int16", "int8")] == [90.0, 25.0, 55.0, 60.0]
    assert machine.gigaflops == 90.0


def test_of_a_programs_settings_and_ways_the_best_counts() -> None:
    own = Contestant(OWN, "kernels, int16", "module", (), 2, INT16)
    peers = [Contestant("peer", f"threads: {count}", "module", (), count) for count in (1, 2)]
    measured: Measured = {}
    for taken in (4.0, 2.0, 3.0):
        add_figures(measured, "size", own, {"work": taken})
        add_figures(measured, "size", peers[0], {"work; sorted": taken + 4, "work; together": 20.0})
        add_figures(measured, "size", peers[1], {"work; sorted": 30.0, "other": 1.0})
    best = best_settings(measured, "size", "work")
    assert list(best) == [OWN, "peer"]
    assert best["peer"][0].setting == "threads: 1, sorted"
    assert cells(best["peer"][1], best[OWN][1]) == ["7.0", "6.0–8.0", "2.33"]
    assert share(1.5, best[OWN][1]) == "50%"
    assert share(None, [3.0]) == "–"


def test_the_least_memory_has_every_weight_once() -> None:
    shape = SHAPES["gpt2"]
    past = 2 * 12 * 768 * 4 * (writing.PROMPT + writing.MANY)
    assert shape.least_megabytes(FLOAT32) == pytest.approx((4 * 124_439_808 + past) / 1e6)
    assert shape.least_megabytes(INT8) == pytest.approx(
        (shape.least_megabytes(FLOAT32) * 1e6 - 3 * shape.matrices) / 1e6
    )


def test_states_that_point_the_same_way_have_a_cosine_of_one() -> None:
    one = np.array([[1.0, 0.0], [3.0, 4.0]])
    assert least_cosine(one, 2 * one) == pytest.approx(1.0)
    assert least_cosine(one, np.array([[1.0, 0.0], [4.0, -3.0]])) == pytest.approx(0.0)


# Reports


@pytest.mark.parametrize(
    ("comparison", "sizes", "works"),
    [(gpt, list(SHAPES), [*writing.SPEEDS, *writing.MEMORIES]), (bert, list(reading.SIZES), list(reading.CELLS))],
    ids=["gpt", "bert"],
)
def test_every_kind_of_work_has_a_row_for_every_program(comparison: Any, sizes: list[str], works: list[str]) -> None:
    contestants = [Contestant(OWN, "kernels, int16", "m", (), 2, INT16), Contestant("peer", "int8", "m", (), 1, INT8)]
    measured: Measured = {(size, work, one): [2e4, 4e4] for size in sizes for work in works for one in contestants}
    machine = machine_with(gigaflops=100.0, gigabytes=10.0, int16=200.0, int8=400.0)
    report = comparison.describe(Settings(repeats=2), machine, measured, ["a proof"])
    assert len(report.rows) == 2 * len(sizes) * len(works)
    assert {len(row) for row in report.rows} == {len(report.header)}
    assert {row[report.header.index("times saccade")] for row in report.rows} == {"1.00"}
    assert all(row[-1].endswith("%") for row in report.rows)
    assert "Same weights, a proof." in report.about


def test_the_command_knows_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "gpt", "bert", "--calls", "1"])
    names, settings, _ = command._read_arguments()
    assert (names, settings.calls) == (["gpt", "bert"], 1)
