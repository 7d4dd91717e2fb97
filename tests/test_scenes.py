"""Drawn scenes: composed by number, drawn with any glyphs, told in a grammar that reads its own captions, asked."""

from collections import Counter
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from saccade.data.picture_texts import JoinedExamples, SceneTexts, StoredExamples
from saccade.data.scene_captions import KINDS, ThingGroup, check_caption, describe, read_caption
from saccade.data.scene_drawing import SceneDrawer, emoji_glyphs, find_emoji_font, squared
from saccade.data.scene_examples import SceneExamples, scene_parts
from saccade.data.scene_layout import OPPOSITE, SIDE, Placed, Scene, SceneComposer, held_out
from saccade.data.scene_questions import QUESTIONS, ask_about
from saccade.data.scene_things import GROUNDS, THINGS
from saccade.errors import MissingData
from saccade.sources.picture import PictureSource

SCENES = [SceneComposer(1)(number) for number in range(300)]
OTHERS = [SceneComposer(1, "held out")(number) for number in range(100)]
CAT, DOG, TREE = (KINDS[word] for word in ("cat", "dog", "tree"))


def stand_ins() -> list[Image.Image]:
    """A coloured disc or square for each kind of thing: no font is needed."""
    found = []
    for kind in range(len(THINGS)):
        sheet = Image.new("RGBA", (40, 40))
        pen, colour = ImageDraw.Draw(sheet), (37 * kind % 256, 91 * kind % 256, 151 * kind % 256, 255)
        (pen.ellipse if kind % 2 else pen.rectangle)((5, 5, 34, 34), fill=colour)
        found.append(squared(sheet))
    return found


DRAWER = SceneDrawer(stand_ins())


def scene(*things: tuple[int, float, float, float]) -> Scene:
    return Scene(tuple(Placed(*one) for one in things), 0)


# Composing


def test_a_scene_depends_on_seed_and_number_alone() -> None:
    again = SceneComposer(1)
    assert [again(number) for number in reversed(range(20))] == SCENES[:20][::-1]
    assert SceneComposer(2)(0) != SCENES[0]
    first, second = DRAWER(SCENES[3]), SceneDrawer(stand_ins())(SCENES[3])
    assert first.shape == (SIDE, SIDE, 3)
    assert first.dtype == np.uint8
    assert np.array_equal(first, second)


def test_things_stand_inside_and_only_those_behind_are_covered() -> None:
    for one in SCENES + OTHERS:
        for thing in one.things:
            assert min(thing.box) >= 0
            assert max(thing.box) <= SIDE
        assert 1 <= len(one.things) <= 5
        assert 1 <= len(one.kinds) <= 3
        for a, b in permutations(one.kinds, 2):
            found = one.relations(a, b)
            assert found, "any two kinds can be told apart by where they are"
            assert set(found) == {OPPOSITE[relation] for relation in one.relations(b, a)}


def test_what_is_held_out_is_never_trained_on() -> None:
    def counts(one: Scene) -> dict[int, int]:
        return {kind: len(one.of(kind)) for kind in one.kinds}

    assert not any(held_out(counts(one)) for one in SCENES)
    assert all(held_out(counts(one)) for one in OTHERS)
    sizes = Counter(one.size(kind) for one in SCENES for kind in one.kinds)
    assert len(sizes) == 3
    assert len({kind for one in SCENES for kind in one.kinds}) == len(THINGS)
    assert {one.ground for one in SCENES} == set(range(len(GROUNDS)))


def test_all_relations_occur_and_hold_as_they_are_drawn() -> None:
    found = Counter(
        relation for one in SCENES for a, b in permutations(one.kinds, 2) for relation in one.relations(a, b)
    )
    assert set(found) == set(OPPOSITE)
    behind = scene((CAT, 20, 20, 30), (DOG, 40, 20, 30))
    assert behind.relations(CAT, DOG) == ["behind"]
    assert scene((CAT, 5, 40, 20), (DOG, 60, 42, 20)).relations(CAT, DOG) == ["left"]
    assert scene((CAT, 5, 5, 20), (DOG, 60, 60, 20)).relations(CAT, DOG) == ["left", "above"]


def test_every_word_names_one_thing() -> None:
    words = [word for thing in THINGS for word in {word for pair in thing.names for word in pair}]
    assert len(words) == len(set(words))
    assert not set(words) & {word for ground in GROUNDS for word in ground.names}


def test_glyphs_of_the_font_are_all_there_and_differ() -> None:
    try:
        font = find_emoji_font()
    except MissingData:
        pytest.skip("fonts-noto-color-emoji is not installed")
    small = [np.asarray(glyph.resize((16, 16))) for glyph in emoji_glyphs(font)]
    assert len({one.tobytes() for one in small}) == len(THINGS)


def test_without_the_font_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.data.scene_drawing.FOLDERS", (str(tmp_path),))
    monkeypatch.delenv("SACCADE_FONTS", raising=False)
    with pytest.raises(MissingData, match="fonts-noto-color-emoji"):
        find_emoji_font()


# Captions


def test_the_grammar_reads_and_approves_all_it_writes() -> None:
    texts = set()
    for number, one in enumerate(SCENES + OTHERS):
        for time in range(3):
            text = describe(one, np.random.default_rng([number, time]))
            checked = check_caption(text, one)
            assert checked.right, (text, one)
            assert checked.sizes, text
            assert checked.ground, text
            texts.add(text)
            said = read_caption(text.upper() + ".")
            assert said is not None
            assert len(said.groups) == len(one.kinds)
            assert len(said.relations) == len(one.kinds) - 1
    assert len(texts) > 2 * len(SCENES)


def test_what_is_wrong_is_found() -> None:
    one = scene((CAT, 5, 40, 30), (DOG, 60, 20, 30), (DOG, 60, 60, 30))
    assert check_caption("there is a cat to the left of two puppies on the meadow", one).right
    assert check_caption("two dogs right of a kitten", one).right
    wrong = {
        "a cat left of a dog": "counts",
        "a pig left of two dogs": "things",
        "a cat": "things",
        "a cat left of two dogs and a cat above the dogs": "things",
        "a cat right of two dogs": "relations",
        "a cat behind two dogs": "relations",
        "a small cat left of two dogs": "sizes",
        "a cat left of two dogs on snow": "ground",
    }
    for text, part in wrong.items():
        checked = check_caption(text, one)
        assert checked.read, text
        assert not getattr(checked, part), text
        assert checked.right == (part in ("sizes", "ground")), text
    for text in ("", "cat", "a cat left of", "a cat left of two dogs and", "a cat on", "a cat the dog", "six cats"):
        assert not check_caption(text, one).read, text


def test_exchanged_captions_are_mostly_wrong() -> None:
    captions = [describe(one, np.random.default_rng(number)) for number, one in enumerate(SCENES)]
    wrong = [not check_caption(text, one).right for text, one in zip(captions[1:], SCENES, strict=False)]
    assert np.mean(wrong) > 0.95


def test_a_group_is_read_with_number_and_size() -> None:
    said = read_caption("a picture of an owl over three little fish on water")
    assert said is not None
    assert said.groups == (ThingGroup(KINDS["owl"], 1), ThingGroup(KINDS["fish"], 3, "small"))
    assert said.relations == ((KINDS["owl"], "above", KINDS["fish"]),)
    assert said.ground == 3


# Questions


def test_questions_of_all_kinds_have_the_answer_that_the_scene_has() -> None:
    asked = [ask_about(one, np.random.default_rng(number)) for number, one in enumerate(SCENES)]
    assert {one.kind for one in asked} == set(QUESTIONS)
    assert {one.answer for one in asked if one.kind == "is there"} == {"yes", "no"}
    for question, one in zip(asked, SCENES, strict=True):
        names = {THINGS[kind].name for kind in one.kinds}
        match question.kind:
            case "how many":
                assert (["zero", "one", "two", "three", "four", "five"].index(question.answer)) in (
                    0,
                    *map(len, map(one.of, one.kinds)),
                )
            case "what" | "which":
                assert question.answer in names
            case "ground":
                assert question.answer == GROUNDS[one.ground].names[0]


def test_what_where_and_which_are_answered_by_the_picture() -> None:
    one = scene((CAT, 2, 38, 20), (DOG, 70, 40, 18))
    random = np.random.default_rng(0)
    found = {QUESTIONS[kind](one, random) for kind in ("what", "where", "which") for _ in range(40)}
    assert ("where is the dog?", "right") in found
    assert ("what is left of the dog?", "cat") in found
    assert ("which is right, the cat or the dog?", "dog") in found


# Examples


def parts(monkeypatch: pytest.MonkeyPatch, *, asks: bool) -> tuple[SceneExamples, SceneTexts]:
    monkeypatch.setattr("saccade.data.scene_examples.SceneDrawer.with_emoji", lambda: DRAWER)
    data = SceneTexts(count=20, valid=6, test=5)
    found = scene_parts(data, PictureSource(size_HW=(SIDE, SIDE)), 1, asks=asks).train()
    assert isinstance(found, SceneExamples)
    return found, data


@pytest.mark.parametrize("asks", [False, True])
def test_an_example_is_known_by_its_number(monkeypatch: pytest.MonkeyPatch, asks: bool) -> None:
    train, data = parts(monkeypatch, asks=asks)
    some = train.take(np.array([3, 25, 7]))
    alone = train.take(np.array([25]))
    assert np.array_equal(some.pictures_BHWC[1:2], alone.pictures_BHWC)
    assert some.texts[1:2] == alone.texts
    assert some.questions[1:2] == alone.questions
    assert bool(some.questions) == asks
    assert not np.array_equal(train.take(np.array([5])).pictures_BHWC, alone.pictures_BHWC), "no epoch is like another"
    held = scene_parts(data, train.source, 1, asks=asks)
    first, second = held.test()
    assert (len(held.valid()[0]), len(first), len(second)) == (6, 5, 5)
    assert len(first.kinds) == (5 if asks else 0)
    if not asks:
        assert all(
            check_caption(text, one).right for (text,), one in zip(second.references, second.scenes, strict=True)
        )


def test_sets_joined_are_each_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    train, _ = parts(monkeypatch, asks=True)
    pictures = np.zeros((3, SIDE, SIDE, 3), dtype=np.uint8)
    stored = StoredExamples(pictures, np.array([0, 1, 2, 2]), ["a", "b", "c", "d"], ["w", "x", "y", "z"])
    joined = JoinedExamples([train, stored])
    assert len(joined) == 24
    taken = joined.take(np.array([20, 5, 23, 24 + 5, 24 + 21]))
    assert [taken.texts[place] for place in (0, 2, 4)] == ["w", "z", "x"]
    assert [taken.questions[place] for place in (0, 2, 4)] == ["a", "d", "b"]
    assert taken.texts[1] == train.take(np.array([5])).texts[0]
    assert np.array_equal(taken.pictures_BHWC[3:4], train.take(np.array([25])).pictures_BHWC)
    held = replace(stored, questions=["a", "b", "c", "c"]).held_out("x")
    assert held.references == [["w"], ["x"], ["y", "z"]]
    assert held.questions == ["a", "b", "c"]
