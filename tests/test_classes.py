"""Figures of classes and numbers: closed forms, other people's code, and intervals that mean something."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.errors import UserError
from saccade.evaluate.classes import (
    Classified,
    accuracy,
    class_f1,
    class_scores,
    confusion_table,
    draw_confusion,
    macro_f1,
    matthews,
    number_scores,
    pearson,
    spearman,
)
from saccade.evaluate.metrics import Score

# A published table: 90 cats told as cats, 40 as dogs; 20 dogs as cats, 50 as dogs.
TWO = Classified([0] * 130 + [1] * 70, [0] * 90 + [1] * 40 + [0] * 20 + [1] * 50, ["cat", "dog"])
ANSWERS = st.integers(1, 5).flatmap(
    lambda classes: st.tuples(
        st.just([f"class {number}" for number in range(classes)]),
        st.lists(st.tuples(st.integers(0, classes - 1), st.integers(0, classes - 1)), min_size=1, max_size=40),
    )
)
NUMBERS = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=30)


def classified(drawn: tuple[list[str], list[tuple[int, int]]]) -> Classified:
    classes, pairs = drawn
    return Classified([gold for gold, _ in pairs], [predicted for _, predicted in pairs], classes)


def many(right: float, count: int, classes: int = 3, seed: int = 0) -> Classified:
    random = np.random.default_rng(seed)
    gold = random.integers(classes, size=count)
    predicted = np.where(random.random(count) < right, gold, (gold + 1) % classes)
    return Classified(gold.tolist(), predicted.tolist(), [f"class {number}" for number in range(classes)])


# Values


def test_closed_forms_of_two_classes() -> None:
    f1 = {"cat": 2 * 90 / (2 * 90 + 40 + 20), "dog": 2 * 50 / (2 * 50 + 40 + 20)}
    values = {score.name: score.value for score in class_scores(TWO, bootstrap=0)}
    assert values == pytest.approx(
        {
            "accuracy": 70.0,
            "macro F1": 50 * (f1["cat"] + f1["dog"]),
            "F1 of 'dog'": 100 * f1["dog"],
            "Matthews": (90 * 50 - 40 * 20) / math.sqrt(130 * 70 * 110 * 90),
        }
    )
    assert class_f1(TWO, "cat", bootstrap=0).value == pytest.approx(100 * f1["cat"])


def test_the_confusion_matrix_has_true_classes_as_rows() -> None:
    assert TWO.confusion_GP.tolist() == [[90, 40], [20, 50]]


def test_three_classes_have_no_f1_of_one_and_the_matthews_of_gorodkin() -> None:
    answers = Classified([0, 0, 1, 1, 2, 2], [0, 1, 1, 1, 2, 0], ["a", "b", "c"])
    # s = 6, c = 4, true 2 2 2, predicted 2 3 1: (24 - 12) / √((36 - 12)(36 - 14))
    scores = {score.name: score.value for score in class_scores(answers, bootstrap=0)}
    assert scores == pytest.approx(
        {"accuracy": 400 / 6, "macro F1": 100 * (1 / 2 + 4 / 5 + 2 / 3) / 3, "Matthews": 12 / math.sqrt(24 * 22)}
    )


def test_a_class_that_nowhere_occurs_has_no_part_in_the_macro_f1() -> None:
    with_more = Classified(TWO.gold, TWO.predicted, ["cat", "dog", "emu"])
    assert macro_f1(with_more).value == macro_f1(TWO).value
    assert class_f1(with_more, "emu").value == 0


@pytest.mark.parametrize("predicted", [[0] * 4, [1] * 4])
def test_always_the_same_answer_says_nothing(predicted: list[int]) -> None:
    assert matthews(Classified([0, 0, 1, 1], predicted, ["a", "b"])).value == 0
    assert matthews(Classified(predicted, [0, 0, 1, 1], ["a", "b"])).value == 0


@given(ANSWERS)
def test_figures_of_classes_keep_their_bounds_and_ignore_order(drawn: tuple[list[str], list[tuple[int, int]]]) -> None:
    scores = class_scores(classified(drawn), bootstrap=50)
    backwards = class_scores(classified((drawn[0], drawn[1][::-1])), bootstrap=50)
    assert scores == backwards, "the interval too: what is drawn depends on what there is, not on where it stands"
    for score in scores:
        low, high = (-1, 1) if score.name == "Matthews" else (0, 100)
        assert low <= score.value <= high
    if all(gold == predicted for gold, predicted in drawn[1]):
        assert scores[0].value == scores[1].value == 100
        assert scores[0].interval == 0
    counts_GP = classified(drawn).confusion_GP
    assert counts_GP.sum() == len(drawn[1])
    assert scores[0].value == pytest.approx(100 * counts_GP.trace() / counts_GP.sum())


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("count", [5, 200])
def test_classes_agree_with_scikit_learn(classes: int, count: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    answers = many(0.6, count, classes)
    gold, predicted = list(answers.gold), list(answers.predicted)
    assert accuracy(answers, bootstrap=0).value == pytest.approx(100 * metrics.accuracy_score(gold, predicted))
    macro = metrics.f1_score(gold, predicted, average="macro", zero_division=0)
    assert macro_f1(answers, bootstrap=0).value == pytest.approx(100 * macro)
    assert matthews(answers, bootstrap=0).value == pytest.approx(metrics.matthews_corrcoef(gold, predicted), abs=1e-9)
    labels = list(range(len(answers.classes)))
    assert (answers.confusion_GP == metrics.confusion_matrix(gold, predicted, labels=labels)).all()


def test_closed_forms_of_numbers() -> None:
    gold, predicted = [1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 40.0]
    assert spearman(gold, predicted).value == pytest.approx(1 - 6 * 2 / (4 * 15))
    # Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
    assert spearman(gold, [5, 6, 6, 7]).value == pytest.approx(4.5 / math.sqrt(5 * 4.5))
    assert pearson(gold, predicted).value == pytest.approx(np.corrcoef(gold, predicted)[0, 1])
    assert pearson(gold, [0.1 - 3 * value for value in gold]).value == pytest.approx(-1)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9 / 3])
def test_a_constant_correlates_with_nothing(constant: float) -> None:
    for score in (*number_scores([constant] * 7, range(7)), *number_scores(range(7), [constant] * 7)):
        assert (score.value, score.interval) == (0, 0)


@given(NUMBERS)
def test_ranks_are_all_that_spearman_sees(pairs: list[tuple[int, int]]) -> None:
    gold, predicted = zip(*pairs, strict=True)
    bent = [math.exp(value) for value in predicted]
    assert spearman(gold, predicted, bootstrap=20) == spearman(gold, bent, bootstrap=20)


@given(NUMBERS)
def test_numbers_agree_with_scipy(pairs: list[tuple[int, int]]) -> None:
    stats = pytest.importorskip("scipy.stats")
    gold, predicted = zip(*pairs, strict=True)
    if len(set(gold)) > 1 and len(set(predicted)) > 1:
        assert pearson(gold, predicted).value == pytest.approx(stats.pearsonr(gold, predicted).statistic, abs=1e-9)
        assert spearman(gold, predicted).value == pytest.approx(stats.spearmanr(gold, predicted).statistic, abs=1e-9)


# Intervals


def test_the_interval_of_accuracy_is_that_of_a_share() -> None:
    answers = many(0.8, 2000)
    share = accuracy(answers).value / 100
    assert accuracy(answers).interval == pytest.approx(100 * 1.96 * math.sqrt(share * (1 - share) / 2000), rel=0.1)


def test_the_interval_of_pearson_is_fishers() -> None:
    random = np.random.default_rng(0)
    gold = random.normal(size=800)
    score = pearson(gold.tolist(), (gold + random.normal(size=800)).tolist())
    low, high = (math.tanh(math.atanh(score.value) + sign * 1.96 / math.sqrt(797)) for sign in (-1, 1))
    assert score.interval == pytest.approx((high - low) / 2, rel=0.15)


@pytest.mark.parametrize("metric", [accuracy, macro_f1, matthews])
def test_sentences_are_drawn_whole(metric: Callable[[Classified], Score]) -> None:
    one = many(0.8, 300)
    alone = Classified(one.gold, one.predicted, one.classes, range(300))
    # Every answer eight times over says no more than once, which only drawing the eight together knows.
    gold, predicted = ([value for value in side for _ in range(8)] for side in (one.gold, one.predicted))
    eight = Classified(gold, predicted, one.classes)
    grouped = Classified(eight.gold, eight.predicted, eight.classes, [i // 8 for i in range(2400)])
    interval = metric(one).interval
    assert interval is not None
    assert metric(alone).interval == pytest.approx(interval, rel=0.1)
    assert metric(grouped).interval == pytest.approx(interval, rel=0.1)
    assert metric(eight).interval == pytest.approx(interval / math.sqrt(8), rel=0.1)


def test_drawing_again_is_counting_again() -> None:
    """A drawing's figures from weights are those of the drawn examples written out."""
    from saccade.evaluate.classes import _drawn_counts, _macro, _ranks, _weights

    answers = many(0.6, 12)
    grouped = Classified(answers.gold, answers.predicted, answers.classes, range(12))
    macros = np.concatenate([_macro(counts) for counts in _drawn_counts(grouped, 20)])
    values_N = np.array([3.0, 1.0, 2.0, 2.0, 1.0, 5.0, 4.0, 4.0, 4.0, 0.0, 9.0, 9.0])
    (weights_RN,) = _weights(12, 20)
    assert (weights_RN.sum(1) == 12).all()
    assert len(np.unique(weights_RN, axis=0)) == 20
    for weights_N, macro, ranks_N in zip(weights_RN, macros, _ranks(values_N, weights_RN), strict=True):
        drawn = np.repeat(np.arange(12), weights_N).tolist()
        gold, predicted = ([side[i] for i in drawn] for side in (answers.gold, answers.predicted))
        written = Classified(gold, predicted, answers.classes)
        assert 100 * macro == pytest.approx(macro_f1(written, bootstrap=0).value)
        values = values_N[drawn]
        expected = [(values < value).sum() + ((values == value).sum() + 1) / 2 for value in values]
        assert ranks_N[drawn].tolist() == expected


def test_the_same_seed_each_time_and_blocks_do_not_end_it_early(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = many(0.7, 100)
    assert class_scores(answers) == class_scores(answers)
    sentences = Classified(answers.gold, answers.predicted, answers.classes, [i // 5 for i in range(100)])
    whole = class_scores(sentences), number_scores(answers.gold, answers.predicted)
    monkeypatch.setattr("saccade.evaluate.classes.AT_ONCE", 777)
    assert (class_scores(sentences), number_scores(answers.gold, answers.predicted)) == whole


def test_signatures_say_how() -> None:
    assert str(accuracy(TWO)).startswith("accuracy 70.00 ± 6.")
    assert accuracy(TWO).signature == "examples:200|classes:2|bs:1000|seed:12345"
    assert macro_f1(TWO, bootstrap=0).signature == "examples:200|classes:2|average:macro"
    assert macro_f1(TWO, bootstrap=0).interval is None
    grouped = Classified(TWO.gold, TWO.predicted, TWO.classes, [i // 10 for i in range(200)])
    assert matthews(grouped, bootstrap=100).signature == "examples:200|groups:20|classes:2|bs:100|seed:12345"
    assert spearman([1, 2], [1, 2]).signature == "examples:2|bs:1000|seed:12345"


def test_sides_of_different_lengths_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="2 true classes, 1 predicted"):
        Classified([0, 1], [0], ["a", "b"])
    with pytest.raises(ValueError, match="1 groups"):
        Classified([0, 1], [0, 1], ["a", "b"], [0])
    with pytest.raises(ValueError, match="0 true numbers"):
        pearson([], [])


# Who is taken for whom


def test_the_table_lines_up() -> None:
    assert confusion_table(TWO) == (
        "true \\ predicted   cat   dog  recall\n"
        "cat                 90    40    69.2\n"
        "dog                 20    50    71.4\n"
        "precision         81.8  55.6\n"
    )


def test_long_names_and_wide_characters_line_up_too() -> None:
    from rich.cells import cell_len

    table = confusion_table(Classified([0, 1, 1], [0, 1, 0], ["とても良い", "quite\x1b[31m bad", "never"]))
    heads, first, second, third, _ = table.splitlines()
    assert "\x1b" not in table
    assert heads.split() == ["true", "\\", "predicted", "1", "2", "3", "recall"]
    assert first.split() == ["1", "とても良い", "1", "0", "0", "100.0"]
    assert third.split() == ["3", "never", "0", "0", "0", "-"]
    assert len({cell_len(line) for line in (heads, first, second, third)}) == 1


def test_the_picture(tmp_path: Path) -> None:
    for name, start in (("c.png", b"\x89PNG"), ("c.SVG", b"<?xml")):
        assert draw_confusion(TWO, tmp_path / name).read_bytes().startswith(start)
    dollars = Classified(TWO.gold, TWO.predicted, ["$\\frac$", "$"])
    assert draw_confusion(dollars, tmp_path / "dollars.png").exists()
    with pytest.raises(UserError, match=r"c\.txt: pictures are \.png or \.svg"):
        draw_confusion(TWO, tmp_path / "c.txt")
    with pytest.raises(UserError, match="No such file"):
        draw_confusion(TWO, tmp_path / "none" / "c.png")
