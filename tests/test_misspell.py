"""Lists of misspellings: what is kept and held out, letters side by side, and slips like those learnt from."""

import gzip
import os
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.misspell import (
    KEYBOARD,
    NEIGHBOURS,
    Choices,
    Misspelling,
    Rewrite,
    Slips,
    differences,
    distance,
    held_out,
    read_misspellings,
    rewrites,
)
from saccade.errors import UserError

DATA = Path(os.environ.get("SACCADE_DATA", "data"))
LISTS = [DATA / "spelling/codespell.tsv.gz", DATA / "spelling/norvig.tsv"]
needs_lists = pytest.mark.skipif(not all(path.exists() for path in LISTS), reason="no lists in $SACCADE_DATA")
WORDS = st.text("abc", max_size=7)


def damerau(one: str, other: str) -> int:
    """The definition: optimal string alignment, letter by letter from the end."""

    @cache
    def to(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        ways = [to(i - 1, j) + 1, to(i, j - 1) + 1, to(i - 1, j - 1) + (one[i - 1] != other[j - 1])]
        if i > 1 and j > 1 and one[i - 2 : i] == other[j - 2 : j][::-1]:
            ways.append(to(i - 2, j - 2) + 1)
        return min(ways)

    return to(len(one), len(other))


def listed(tmp_path: Path, *lines: str, name: str = "list.tsv") -> Path:
    path = tmp_path / name
    text = "\n".join(["misspelling\tcorrect\tcount", *lines]) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


# Lists


def test_of_a_list_stays_what_makes_sense(tmp_path: Path) -> None:
    path = listed(
        tmp_path,
        "beleive\tbelieve",
        "Wendsday\tWednesday",
        "alot\ta_lot",  # two words
        "be_leive\tbelieve",
        "non-existant\tnon-existent",
        "2rd\t2nd",
        "Economic\teconomic",  # only the case
        "send\tsurface",  # nothing to do with it
        "vea\tare",  # two slips in three letters
        "i\tit",  # one letter
        "dont\tdon’t",
    )
    kept = {(wrong, right) for wrong, right, _ in read_misspellings([path])}
    assert kept == {("beleive", "believe"), ("wendsday", "wednesday"), ("dont", "don't")}


def test_a_real_word_stays_where_it_is_a_slip_of_the_other(tmp_path: Path) -> None:
    path = listed(
        tmp_path,
        "form\tfrom",
        "the\tshe",
        "liking\tlooking",
        "fomr\tform",
        "teh\tthe",
        "likng\tliking",
        "lokking\tlooking",
    )
    kept = {(wrong, right) for wrong, right, _ in read_misspellings([path])}
    assert ("form", "from") in kept
    assert not kept & {("the", "she"), ("liking", "looking")}
    assert len(kept) == 5


def test_several_words_share_a_misspelling_and_lists_add_up(tmp_path: Path) -> None:
    one = listed(tmp_path, "afect\taffect|effect|of_fact", name="one.tsv.gz")
    other = listed(tmp_path, "afect\taffect\t3", name="other.tsv")
    assert read_misspellings([one, other]) == [("afect", "affect", 3.5), ("afect", "effect", 0.5)]


@pytest.mark.parametrize("line", ["beleive", "beleive\tbelieve\tmany", "beleive\tbelieve\t1\t2", "beleive\tbelieve\t0"])
def test_a_wrong_line_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(UserError, match=r"list\.tsv, line 3: expected misspelling"):
        read_misspellings([listed(tmp_path, "teh\tthe", line)])


def test_the_held_out_fifth_is_fixed() -> None:
    # Pinned: another hash would be another test, and what models were trained on would be in it.
    held = {"your", "thge", "thsi", "waht", "liek"}
    trained = {"form", "from", "their", "teh", "thier", "wendsday"}
    assert {word for word in held | trained if held_out(word)} == held
    assert held_out("Thsi") == held_out("THSI") is True
    assert held_out("dont’") == held_out("dont'")
    share = np.mean([held_out(f"word{number}") for number in range(5000)])
    assert 0.18 < share < 0.22


# Letters side by side


@given(WORDS, WORDS)
def test_differences_are_as_few_as_the_definition_says(right: str, wrong: str) -> None:
    assert distance(right, wrong) == damerau(right, wrong)


@given(WORDS, WORDS)
def test_differences_put_back_give_the_other_word(right: str, wrong: str) -> None:
    parts, end = [], 0
    for start, stop, wrong_start, wrong_stop in differences(right, wrong):
        parts += [right[end:start], wrong[wrong_start:wrong_stop]]
        end = stop
    assert "".join([*parts, right[end:]]) == wrong


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [
        ("believe", "beleive", [("inner", "ie", "ei", "swap")]),
        ("raining", "rainning", [("inner", "n", "nn", "doubling")]),
        ("looking", "loking", [("inner", "oo", "o", "undoubling")]),
        ("until", "untill", [("last", "l", "ll", "doubling")]),
        ("phone", "fone", [("first", "ph", "f", "string")]),
        ("knife", "nife", [("first", "k", "", "deletion")]),
        ("able", "hable", [("first", "a", "ha", "insertion")]),
        ("form", "forem", [("inner", "r", "re", "insertion")]),
        ("separate", "seperete", [("inner", "a", "e", "substitution"), ("inner", "a", "e", "substitution")]),
        ("same", "same", []),
    ],
)
def test_slips_are_told_apart(right: str, wrong: str, expected: list[tuple[str, str, str, str]]) -> None:
    assert [(*rewrite, rewrite.kind) for rewrite in rewrites(right, wrong)] == expected


@given(WORDS.filter(bool), WORDS)
def test_no_rewrite_is_of_nothing_or_too_long(right: str, wrong: str) -> None:
    for place, before, after in rewrites(right, wrong):
        assert 1 <= len(before) <= 3
        assert len(after) <= 4  # three, and the letter they are written with
        assert before != after
        assert before in right
        assert right.startswith(before) or place != "first"


# Slips

PAIRS = [
    *[Misspelling(f"{stem}cieve", f"{stem}ceive", 1.0) for stem in ("re", "de", "per", "con")],
    *[Misspelling(f"{stem}ence", f"{stem}ance", 1.0) for stem in ("bal", "ch", "gl", "tr")],
]


def test_a_slip_is_written_where_it_was_learnt() -> None:
    random = np.random.default_rng(0)
    drawn = Counter(Slips.learn(PAIRS).draw("receipt", random) for _ in range(1000))
    assert drawn.most_common(1)[0][0] == "reciept"
    # What is left is the small share of neighbouring keys, which no list need have.
    others = drawn.total() - drawn["reciept"]
    assert 0.4 * KEYBOARD < others / drawn.total() < 2 * KEYBOARD
    near = [wrong for wrong in drawn if wrong != "reciept" and len(wrong) == len("receipt")]
    assert near
    for wrong in near:
        (rewrite,) = rewrites("receipt", wrong)
        assert rewrite.kind in ("substitution", "swap")
        assert rewrite.kind == "swap" or rewrite.after in NEIGHBOURS[rewrite.before]


def test_the_first_letter_is_a_place_of_its_own() -> None:
    slips = Slips.learn([Misspelling("nife", "knife", 1.0), Misspelling("nee", "knee", 1.0)])
    random = np.random.default_rng(0)
    assert slips.draw("knot", random) == "not"
    drawn = {slips.draw("ankle", random) for _ in range(300)}
    assert "anle" not in drawn


def test_more_frequent_misspellings_are_drawn_more_often() -> None:
    slips = Slips.learn([Misspelling("sepurate", "separate", 1.0), Misspelling("seperate", "separate", 9.0)])
    random = np.random.default_rng(0)
    drawn = Counter(slips.draw("par", random) for _ in range(2000))
    assert 6 < drawn["per"] / drawn["pur"] < 13


def test_words_without_a_known_letter_are_left() -> None:
    random = np.random.default_rng(0)
    slips = Slips.learn(PAIRS)
    assert slips.draw("日本", random) == "日本"
    assert slips.draw("", random) == ""


def test_nothing_cannot_be_learnt_from() -> None:
    with pytest.raises(ValueError, match="no misspellings"):
        Slips.learn([])


def test_keys_and_their_neighbours() -> None:
    assert set(NEIGHBOURS["g"]) == set("ftyhbv")
    assert all(key in NEIGHBOURS[other] for key, others in NEIGHBOURS.items() for other in others)


def test_choices_follow_their_weights() -> None:
    random = np.random.default_rng(0)
    choices = Choices.of({"a": 1.0, "b": 3.0})
    drawn = Counter(choices.draw(random) for _ in range(4000))
    assert drawn["b"] / 4000 == pytest.approx(0.75, abs=0.03)


@pytest.mark.data
@needs_lists
def test_slips_drawn_are_of_the_kinds_of_the_list() -> None:
    part = [misspelling for misspelling in read_misspellings(LISTS[:1]) if not held_out(misspelling.wrong)]
    assert len({misspelling.wrong for misspelling in part}) > 45_000
    slips = Slips.learn(part)
    random = np.random.default_rng(0)
    kinds: Counter[str] = Counter()
    for number in random.integers(len(part), size=4000):
        right = part[number].right
        kinds.update(rewrite.kind for rewrite in rewrites(right, slips.draw(right, random)))
    for kind, share in slips.kinds.items():
        assert kinds[kind] / kinds.total() == pytest.approx(share, abs=0.05), kind
    # People swap ie, and seldom miss the first letter.
    inner, first = slips.table["inner", "e"].sums[-1], slips.table["first", "e"].sums[-1]
    assert inner > first
    assert Rewrite("inner", "ie", "ei").after in slips.table["inner", "ie"].strings
