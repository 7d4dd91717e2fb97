"""Explanations: planted causes are found, estimates know how far off they are, curves are areas one can work out by
hand, forms are read back."""

import json
import math
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import saccade
from planted import KINDS, errors, seconds_of_masks
from saccade.errors import UserError, WrongUse
from saccade.explaining.boxes import subject_of
from saccade.explaining.checks import check
from saccade.explaining.covers import PictureCover, SoundCover, TextCover
from saccade.explaining.curves import Curves, curves
from saccade.explaining.explain import METHODS, explain, explained
from saccade.explaining.questionnaire import digest_of, read_answers, write_form
from saccade.explaining.rise import Estimate, rise
from tiny import Said, ask, insist_one_line

SENTENCE = "this cat is very large"


# Covers


def test_a_covered_word_takes_its_space_along_and_no_more() -> None:
    cover = TextCover("One, two\tthree; four.")
    labels = [cover.axis.name([place]) for place in range(cover.places)]
    assert labels == ["One", ",", "two", "three", ";", "four", "."]
    assert cover.under(np.ones(7)) == "One, two\tthree; four."
    assert cover.under(np.array([1, 1, 0, 1, 1, 1, 1])) == "One,\tthree; four."
    assert cover.under(np.array([1, 1, 1, 0, 1, 1, 1])) == "One, two\t; four."
    assert cover.under(np.zeros(7)) == ""
    assert TextCover("one two", blank="_").under(np.array([1, 0])) == "one _"
    assert TextCover("bike").under(np.array([1, 0, 1, 1])) == "bke", "a text of one word is covered letter by letter"
    with pytest.raises(UserError, match="no word"):
        TextCover("  ")


def test_masks_are_the_same_however_many_are_drawn_at_once() -> None:
    for cover in (
        TextCover("one two three four five six seven"),
        PictureCover(np.zeros((20, 30, 3), np.uint8)),
        SoundCover(np.zeros(8_000, np.float32), 8_000),
    ):
        whole = cover.masks(3, 0, 40)
        np.testing.assert_array_equal(whole[10:20], cover.masks(3, 10, 20))
        assert whole.min() >= 0
        assert whole.max() <= 1
        assert abs(cover.masks(0, 0, 600).mean() - 0.5) < 0.03, "half of every place is shown"
        assert (1 - cover.windows()).sum(axis=0).min() >= 1, "every place lies under some window"


def test_a_picture_and_a_sound_are_covered_where_the_mask_says() -> None:
    pixels = np.full((4, 4, 3), 200, np.uint8)
    pixels[0] = 0
    mask = np.ones(16, np.float32)
    mask[5] = 0
    under = PictureCover(pixels, fill=10).under(mask)
    assert under.dtype == np.uint8
    assert under[1, 1].tolist() == [10, 10, 10]
    assert np.array_equal(np.delete(under.reshape(16, 3), 5, 0), np.delete(pixels.reshape(16, 3), 5, 0))
    assert PictureCover(pixels).under(mask)[1, 1].tolist() == [150, 150, 150], "the mean colour"
    sound = SoundCover(np.ones(1_000, np.int16) * 7, 10_000)
    assert sound.places == 5
    assert sound.under(np.array([1, 0, 1, 1, 1])).tolist() == [7] * 200 + [0] * 200 + [7] * 600


# RISE


@pytest.mark.parametrize("kind", list(KINDS))
def test_planted_causes_are_found(kind: str) -> None:
    case, _, _ = KINDS[kind]
    assert sum(case(number) for number in range(6)) >= 5


def test_the_error_falls_with_the_root_of_the_masks_and_is_told() -> None:
    (few, off, told), (many, less, less_told) = errors(counts=(60, 1_000), runs=10, truth_masks=16_000)
    assert off / less == pytest.approx(math.sqrt(many / few), rel=0.35)
    assert told / less_told == pytest.approx(math.sqrt(many / few), rel=0.1)
    assert told == pytest.approx(off, rel=0.3)


def test_the_same_seed_gives_the_same_answer_and_a_stop_is_a_beginning() -> None:
    def box(text: str) -> float:
        return text.count("a") + 0.1 * len(text)

    one, same, other = (explain(box, "a cat and a dog", masks=200, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.values_P, same.values_P)
    assert not np.array_equal(one.values_P, other.values_P)
    stopped = explain(box, "a cat and a dog", masks=10_000, seed=1, watch=lambda running: running.count >= 128)
    assert stopped.masks == 128
    np.testing.assert_array_equal(stopped.values_P, explain(box, "a cat and a dog", masks=128, seed=1).values_P)


def test_masks_of_a_picture_take_no_time() -> None:
    begun = time.process_time()
    seconds_of_masks(400)
    assert time.process_time() - begun < 12, "4,000 masks in under a minute on two cores"


def test_an_estimate_of_a_line_is_its_slope() -> None:
    random = np.random.default_rng(0)
    masks = random.random((500, 3))
    estimate = Estimate(3)
    estimate.add(masks[:200], 2 + 3 * masks[:200, 1])
    estimate.add(masks[200:], 2 + 3 * masks[200:, 1])
    assert estimate.values_P[1] == pytest.approx(3, abs=1e-9)
    slopes = [np.polyfit(masks[:, place], 2 + 3 * masks[:, 1], 1)[0] for place in range(3)]
    np.testing.assert_allclose(estimate.values_P, slopes, atol=1e-9)


def test_functions_may_give_several_numbers_names_or_lists() -> None:
    text = "the cat sat"
    assert explain(lambda one: {"no": 0.4, "yes": float("cat" in one)}, text, masks=64).text == "yes"
    several = explain(lambda one: [0.1, "sat" in one], text, masks=200)
    assert (several.text, several.top(1)[0][0]) == ("1", "sat")
    assert explain(lambda one: [0.1, "sat" in one], text, masks=64, output=0).values_P == pytest.approx(0)
    calls: list[int] = []

    def batched(texts: list[str]) -> list[float]:
        calls.append(len(texts))
        return [float("the" in one) for one in texts]

    assert explain(batched, text, masks=128, batched=True).top(1)[0][0] == "the"
    assert max(calls) == 64


@pytest.mark.parametrize(
    ("model", "given", "options", "said"),
    [
        ("en-es", "one two", {}, "a model is a loaded model or a function"),
        (len, 7, {}, "an input is a text"),
        (len, "one two", {"method": "attention"}, "rise, occlusion"),
        (len, "one two", {"method": "rice"}, "did you mean rise"),
        (len, "one two", {"word": 1}, "of a loaded model"),
        (lambda one: float("nan"), "one two", {}, "no finite number"),
        (len, "one two", {"masks": 1}, "at least 2"),
    ],
)
def test_wrong_use_is_said(model: object, given: object, options: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        explain(model, given, **options)  # type: ignore[arg-type]


# Curves


def test_curves_are_worked_out_by_hand() -> None:
    """Four words, of which the box counts "b" three times: 0, 1, 4 … of 6."""
    weights = {"a": 1, "b": 3, "c": 1, "d": 1}
    cover = TextCover("a b c d")
    found = curves(lambda texts: np.array([sum(weights[one] for one in text.split()) for text in texts]), cover,
                   np.array([3, 4, 2, 1]))  # fmt: skip
    assert found.deletion_K.tolist() == [6, 3, 2, 1, 0]
    assert found.insertion_K.tolist() == [0, 3, 4, 5, 6]
    assert found.deletion == pytest.approx((6 + 3 + 3 + 2 + 2 + 1 + 1 + 0) / 8)
    assert found.insertion == pytest.approx((0 + 3 + 3 + 4 + 4 + 5 + 5 + 6) / 8)
    half = Curves(np.array([0, 1.0]), np.array([1.0, 0]), np.array([0, 1.0]), np.array([0, 4]))
    assert half.comprehensiveness == pytest.approx((0.1 + 0.2 + 0.3 + 0.5) / 4)
    assert half.sufficiency == pytest.approx((0.9 + 0.8 + 0.7 + 0.5) / 4)


def test_what_rise_finds_beats_random_removals_and_random_does_not() -> None:
    tagger = saccade.load("tagger")
    raws = ["The old cat sat on the mat.", "She reads a long book.", "They will come tomorrow.", "We saw two birds."]
    *_, table = check(tagger, raws, [tagger(raw) for raw in raws], ("occlusion", "random"), masks=0)
    verdicts = {(row.method, row.measure): row.verdict for row in table}
    assert verdicts["occlusion", "insertion"] == "better"
    assert verdicts["random", "insertion"] != "better"
    assert all(len(row.values_I) == 4 for row in table)


# Loaded models


@pytest.mark.parametrize("method", [one for one in METHODS if one not in ("random", "gradient")])
def test_the_word_that_is_translated_is_found_by_every_method(method: str) -> None:
    translator = saccade.load("en-es")
    found = explain(translator, SENTENCE, method=method, word=2, masks=128)  # type: ignore[arg-type]
    assert found.text == "gato"
    assert found.top(1)[0][0] == "cat"
    assert found.score == pytest.approx(math.exp(translator.forced(translator(SENTENCE)).logprobs_IP[0, 1]), abs=1e-5)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("bert-mini", "the cat sat on the [MASK] and slept", None),
        ("tagger", "The cat sat.", None),
        ("pronouncer", "bike", None),
        ("speller", "I hav a cat", "hav"),
        ("stories", "Tom had a red ball. Tom said", None),
    ],
)
def test_every_bundled_kind_is_explained(name: str, text: str, found: str | None) -> None:
    pipeline = saccade.load(name)
    request = saccade.pipelines.pipeline.Request(max_tokens=4) if name == "stories" else None
    subject = subject_of(pipeline, text, word=2 if found else None, request=request)
    for method in ("rise", "occlusion", "attention", "rollout"):
        one = explained(subject, method, masks=64)  # type: ignore[arg-type]
        assert np.isfinite(one.values_P).all()
        assert len(one.values_P) == len(one.labels)
        if found:
            assert one.top(1)[0][0] == found
        if method == "attention":
            assert one.values_P.min() >= 0
            assert one.values_P.sum() <= 1 + 1e-5


# Forms


def test_a_form_holds_its_questions_and_reads_its_answers_back(tmp_path: Path) -> None:
    cover = TextCover("the cat <b>sat</b> on the mat")
    form = write_form(cover, tmp_path / "form.html", masks=40, seed=5, question="Is it a cat & a dog?")
    page = form.read_text("utf-8")
    assert "Is it a cat &amp; a dog?" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert len(data["items"]) == 40
    assert "<b>" not in "".join(data["items"]), "a text is no markup"
    answers = [[number, float("cat" in item)] for number, item in enumerate(data["items"])]
    (tmp_path / "answers.json").write_text(json.dumps({"form": data["form"], "answers": answers}), "utf-8")
    found = read_answers(cover, tmp_path / "answers.json")
    expected = list(rise(lambda texts: np.array([float("cat" in one) for one in texts]), cover, masks=40, seed=5))[-1]
    np.testing.assert_allclose(found.values_P, expected.values_P)
    with pytest.raises(UserError, match="another input"):
        read_answers(TextCover("another text"), tmp_path / "answers.json")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "no answers of a form"),
        ('{"form": {"seed": 0, "masks": 9, "format": 9}, "answers": []}', "format 9"),
        ('{"form": {"seed": 0, "masks": 9, "format": 1, "input": "D"}, "answers": [[0, 1], [0, 0]]}', "does not have"),
        ('{"form": {"seed": 0, "masks": 9, "format": 1, "input": "D"}, "answers": [[0, 1], [9, 0]]}', "does not have"),
        ('{"form": {"seed": 0, "masks": 9, "format": 1, "input": "D"}, "answers": [[0, 1], [1, 1]]}', "all alike"),
    ],
)
def test_bad_answers_are_refused(content: str, said: str, tmp_path: Path) -> None:
    cover = TextCover("the cat sat")
    (tmp_path / "answers.json").write_text(content.replace('"D"', f'"{digest_of(cover)}"'), "utf-8")
    with pytest.raises(UserError, match=said):
        read_answers(cover, tmp_path / "answers.json")


# The command


def test_the_command_prints_draws_and_checks(tmp_path: Path) -> None:
    said = ask("explain", "en-es", SENTENCE, "--word", "2", "--masks", "64", "-o", tmp_path / "why.png",
               "--curves", tmp_path / "curves.svg", "--format", "json")  # fmt: skip
    record = json.loads(said.out)
    assert (said.code, record["explained"], record["masks"]) == (0, "gato", 64)
    assert record["places"][int(np.argmax(record["values"]))] == "cat"
    assert 0 <= record["deletion"] < record["insertion"] <= 1
    assert Image.open(tmp_path / "why.png").width > 400
    assert "deletion" in (tmp_path / "curves.svg").read_text("utf-8")
    (tmp_path / "texts.txt").write_text("The cat sat.\n\nWe like old books.\nhm\n", "utf-8")
    said = ask("explain", "tagger", "--check", tmp_path / "texts.txt", "--method", "occlusion", "--format", "json")
    rows = [json.loads(line) for line in said.lines]
    assert [row["measure"] for row in rows] == ["deletion", "insertion", "sufficiency", "comprehensiveness"]
    assert {row["inputs"] for row in rows} == {2}
    carried = ask("explain", "en-es", "--check", "test", "--method", "attention", "--inputs", "3")
    assert carried.lines[0].startswith("3 inputs")


def test_a_person_is_asked_by_the_command(tmp_path: Path) -> None:
    Image.fromarray((np.random.default_rng(0).random((40, 60, 3)) * 255).astype(np.uint8)).save(tmp_path / "one.png")
    wrote = ask("explain", "person", tmp_path / "one.png", "--question", "Is this noise?", "--questionnaire",
                tmp_path / "form.html", "--masks", "30")  # fmt: skip
    assert wrote.code == 0, wrote
    data = json.loads((tmp_path / "form.html").read_text("utf-8").split('id="data">')[1].split("</script>")[0])
    answers = {"form": data["form"], "answers": [[number, number % 2] for number in range(30)]}
    (tmp_path / "answers.json").write_text(json.dumps(answers), "utf-8")
    said = ask("explain", "person", tmp_path / "one.png", "--answers", tmp_path / "answers.json", "-o",
               tmp_path / "map.png", "--format", "json")  # fmt: skip
    assert said.code == 0, said
    assert np.shape(json.loads(said.out)["values"]) == (40, 60)
    assert (tmp_path / "map.png").exists()


def test_ctrl_c_prints_what_is_known_by_then(monkeypatch: pytest.MonkeyPatch) -> None:
    install = signal.signal

    def installed(number: int, handler: Any) -> Any:
        before = install(number, handler)
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        monkeypatch.setattr(signal, "signal", install)
        return before

    monkeypatch.setattr(signal, "signal", installed)
    said: Said = ask("explain", "en-es", SENTENCE, "--masks", "10000000", "--format", "json")
    assert said.code == 0
    assert 64 <= json.loads(said.out)["masks"] < 10_000_000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["en-es"], "an input is missing"),
        (["en-es", "one", "--check", "test"], "leave the input out"),
        (["person", "one two"], "a person needs a form"),
        (["en-es", "one two", "--masks", "1"], "at least 2"),
        (["en-es", "one two", "--word", "99"], "word 99 of the answer"),
        (["en-es", "one two", "-o", "x.doc"], "pictures are .png"),
        (["tagger", "one two", "--target", "x"], "only a translation"),
        (["en-es", "--check", "nowhere.tsv"], "no such file"),
    ],
)
def test_wrong_words_are_said_in_one_line(arguments: list[str], said: str) -> None:
    answered = ask("explain", *arguments)
    insist_one_line(answered, answered.code, [said])
    assert answered.code in (1, 2)


def test_no_stop_is_left_behind() -> None:
    before = signal.getsignal(signal.SIGINT)
    ask("explain", "tagger", "one two", "--masks", "4")
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(WrongUse):
        list(rise(lambda inputs: np.zeros(3), TextCover("a b"), masks=4))


# Gradients


@pytest.mark.parametrize(
    ("name", "text", "word", "found"),
    [
        ("en-es", SENTENCE, 2, "cat"),
        ("en-es-rnn", SENTENCE, 2, "cat"),
        ("tagger", "The cat sat.", 3, None),
        ("speller", "I hav a cat", 2, "hav"),
        ("pronouncer", "bike", None, None),
        ("bert-mini", "the cat sat on the [MASK] and slept", None, None),
        ("stories", "Tom had a red ball. Tom said", None, None),
    ],
)
def test_gradients_are_had_of_every_kind_and_find_the_translated_word(
    name: str, text: str, word: int | None, found: str | None
) -> None:
    request = saccade.pipelines.pipeline.Request(max_tokens=4) if name == "stories" else None
    explanation = explain(saccade.load(name), text, method="gradient", word=word, request=request)
    assert np.isfinite(explanation.values_P).all()
    assert explanation.values_P.any()
    if found:
        assert explanation.top(1)[0][0] == found


def test_a_gradient_is_what_a_small_step_changes() -> None:
    """Of a model that is a sum of its vectors, by hand: the product of a vector and its gradient."""
    from torch import Tensor, nn

    from saccade.evaluate.gradients import _gradient

    torch.manual_seed(0)
    model = nn.ModuleDict({"embed": nn.Embedding(5, 3)})
    weights, tokens = torch.randn(3), torch.tensor([[1, 4, 1]])

    def run(_: Tensor | None) -> Tensor:
        summed: Tensor = (model["embed"](tokens) @ weights).square().sum()
        return summed

    expected = [2 * float(model["embed"].weight[token].detach() @ weights) ** 2 for token in (1, 4, 1)]
    assert _gradient(model, run, tokens, "embed").tolist() == pytest.approx(expected, rel=1e-5)
