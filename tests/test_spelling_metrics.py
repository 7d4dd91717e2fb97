"""Figures of corrected sentences and of pronunciations: closed forms, words that come and go, meaningful intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.evaluate.pronunciation import (
    accepted_pronunciations,
    edits,
    phoneme_error_rate,
    pronunciation_scores,
    word_error_rate,
)
from saccade.evaluate.spelling import (
    Corrected,
    accuracy_at,
    align,
    correction_rate,
    introduction_rate,
    spelling_scores,
    word_accuracy,
)

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "ab", "bc"]), max_size=6).map(" ".join)


def rates(source: str, output: str, truth: str) -> tuple[float, float, float]:
    corrected = Corrected.of([source], [output], [truth])
    accuracy, *others = (
        metric(corrected, bootstrap=0).value for metric in (word_accuracy, correction_rate, introduction_rate)
    )
    return accuracy, others[0], others[1]


# Words side by side


@pytest.mark.parametrize(
    ("text", "right", "extra"),
    [
        ("we will go together now", [1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]),
        ("we wil go together now", [1, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0]),
        ("we will go to gether now", [1, 1, 1, 0, 1], [0, 0, 0, 1, 0, 0]),  # “gether” is the likelier half
        ("we will gotogether now", [1, 1, 0, 0, 1], [0, 0, 0, 0, 0, 0]),
        ("we will together now", [1, 1, 0, 1, 1], [0, 0, 0, 0, 0, 0]),
        ("will go together now", [0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]),
        ("oh we will go together now", [1, 1, 1, 1, 1], [1, 0, 0, 0, 0, 0]),
        ("we will go together now now now", [1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 2]),
        ("we will go together nwo and then", [1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 2]),
        ("", [0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]),
        ("We will go together now.", [0, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0]),
    ],
)
def test_words_meet_their_like(text: str, right: list[int], extra: list[int]) -> None:
    found = align(text, "we will go together now")
    assert ([int(word) for word in found.right], found.extra) == (right, extra)


@given(TEXTS, TEXTS)
def test_alignments_are_as_cheap_as_can_be(text: str, truth: str) -> None:
    found = align(text, truth)
    words, truths = text.split(), truth.split()
    assert (len(found.right), len(found.extra)) == (len(truths), len(truths) + 1)
    # Extra words, and words of the truth that are not right, are all the errors.
    assert sum(found.extra) + found.right.count(False) == edits(words, truths)


# Figures


def test_closed_forms() -> None:
    truth = "they sat form by form and wrote"
    source = "thay sat from by form nad wrote"
    output = "they sat from bye form and wrote"
    assert rates(source, output, truth) == pytest.approx((5 / 7, 2 / 3, 1 / 4))


def test_doing_nothing_is_the_share_of_right_words() -> None:
    sources, truths = ["teh cat", "a dgo here now"], ["the cat", "a dog here now"]
    corrected = Corrected.of(sources, sources, truths)
    assert word_accuracy(corrected).value == pytest.approx(4 / 6)
    assert corrected.misspelt_share == pytest.approx(2 / 6)
    assert correction_rate(corrected).value == introduction_rate(corrected).value == 0


def test_a_torn_word_put_together_is_a_correction_and_one_torn_is_an_introduction() -> None:
    assert rates("to gether we sing", "together we sing", "together we sing") == (1, 1, 0)
    assert rates("together we sign", "to gether we sign", "together we sing") == pytest.approx((1 / 4, 0, 2 / 3))


def test_invented_words_cost_as_many_places() -> None:
    assert rates("wee sing", "we sing la la la", "we sing") == pytest.approx((2 / 5, 1, 3 / 4))


def test_words_that_follow_a_lost_one_are_still_right() -> None:
    accuracy, _, introduced = rates("I saw hte man in the park", "I saw man in the park", "I saw the man in the park")
    assert (accuracy, introduced) == pytest.approx((6 / 7, 0))


def test_clean_texts_have_no_correction_rate() -> None:
    names = [score.name for score in spelling_scores(["a b"], ["a c"], ["a b"])]
    assert names == ["word accuracy", "introduction rate"]
    with pytest.raises(ValueError, match="nothing to count"):
        correction_rate(Corrected.of(["a b"], ["a c"], ["a b"]))


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=4))
def test_the_three_figures_agree(rows: list[tuple[str, str, str]]) -> None:
    counts = Corrected.of(*map(list, zip(*rows, strict=True))).before_after_S22.sum(0)  # type: ignore[arg-type]
    kept, places = counts[:, 1].sum(), counts.sum()
    if places and counts[0].sum() and counts[1].sum():
        accuracy, correction, introduction = (
            score.value for score in spelling_scores(*zip(*rows, strict=True), bootstrap=0)
        )
        assert accuracy == pytest.approx(kept / places)
        wrong_before = counts[0].sum() / places
        assert accuracy == pytest.approx(wrong_before * correction + (1 - wrong_before) * (1 - introduction))


def test_unequal_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="1 sources, 2 outputs, 1 truths"):
        Corrected.of(["a"], ["a", "b"], ["a"])


def test_intervals_hold_the_truth_and_draw_sentences() -> None:
    # 400 sentences of ten words, each wholly right or wholly wrong: as uncertain as 400 words, not as 4,000.
    outputs = [" ".join(["a" if number < 320 else "b"] * 10) for number in range(400)]
    score = word_accuracy(Corrected.of(outputs, outputs, ["a " * 10] * 400))
    assert score.interval == pytest.approx(1.96 * np.sqrt(0.8 * 0.2 / 400), rel=0.1)
    assert score.value == pytest.approx(0.8)
    assert str(score).startswith("word accuracy 0.")
    assert "sentences:400|words:4000|bs:1000" in score.signature
    assert word_accuracy(Corrected.of(["a"], ["a"], ["a"]), bootstrap=0).interval is None


def test_rare_misspellings_leave_an_interval() -> None:
    sources = ["teh"] + ["the"] * 3
    assert correction_rate(Corrected.of(sources, ["the"] * 4, ["the"] * 4)).value == 1.0


def test_accuracy_at() -> None:
    candidates = [["form", "from"], ["the"], [], ["a", "b", "c", "d", "e", "f"]]
    accepted = [["from"], ["the", "they"], ["x"], ["f", "g"]]
    assert accuracy_at(candidates, accepted, 1).value == 0.25
    assert accuracy_at(candidates, accepted, 5).value == 0.5
    assert accuracy_at(candidates, accepted, 6).value == 0.75


# Pronunciations


def test_edits_of_phonemes() -> None:
    assert edits(["K", "AE", "T"], ["K", "AE", "T", "S"]) == 1
    assert edits(["K", "AE", "T"], ["T", "AE", "K"]) == 2  # no swaps
    assert edits([], ["K", "AE"]) == 2
    assert edits(["AH0"], ["AH1"]) == 1


def test_the_nearest_accepted_pronunciation_counts() -> None:
    outputs = ["T AH M EY T OW", "K AE", "AH B"]
    accepted = [["T AH M AA T OW", "T AH M EY T OW"], ["K AE T S", "K AE T"], ["AH B"]]
    assert word_error_rate(outputs, accepted).value == pytest.approx(100 / 3)
    # One phoneme of 6 + 3 + 2 is missing: “K AE T” is nearer than “K AE T S”.
    assert phoneme_error_rate(outputs, accepted).value == pytest.approx(100 / 11)


def test_of_two_equally_near_ones_the_longer_counts() -> None:
    assert phoneme_error_rate(["A B C"], [["A B", "A B C D"]]).value == pytest.approx(25)
    assert phoneme_error_rate(["A B C"], [["A B C D", "A B"]]).value == pytest.approx(25)


def test_too_many_phonemes_may_be_more_than_all() -> None:
    assert phoneme_error_rate(["A B C D"], [["X"]]).value == pytest.approx(400)
    assert word_error_rate([""], [["X"]]).value == 100


def test_scores_of_pronunciations_are_percents_with_intervals() -> None:
    random = np.random.default_rng(0)
    outputs = ["K AE T" if right else "K AH T" for right in random.random(900) < 0.9]
    wer, per = pronunciation_scores(outputs, [["K AE T"]] * 900)
    assert (wer.name, per.name) == ("WER", "PER")
    assert wer.value == pytest.approx(3 * per.value)
    assert wer.interval == pytest.approx(100 * 1.96 * np.sqrt(0.1 * 0.9 / 900), rel=0.15)
    assert "words:900|phonemes:2700" in per.signature
    with pytest.raises(ValueError, match="1 pronunciations of 2 words"):
        word_error_rate(["A"], [["A"], ["B"]])


def test_pronunciations_are_gathered_by_word() -> None:
    entries = [("READ", "R EH D"), ("A", "AH"), ("READ", "R IY D"), ("READ", "R  EH D ")]
    assert accepted_pronunciations(entries) == {"READ": ["R EH D", "R IY D"], "A": ["AH"]}
