"""Word alignments: the error rate by hand, links between words as they are given, heads that are chosen on data."""

import json
from pathlib import Path

import numpy as np
import pytest

import saccade
from saccade.errors import UserError
from saccade.evaluate.alignment import (
    GoldAlignment,
    alignment_scores,
    diagonal,
    joined_links,
    read_links,
    write_links,
)
from saccade.explaining.aligning import Aligner, choose_by_gold, joined, read_pair
from saccade.explaining.places import attention_layers
from tiny import ask, insist_one_line

SOURCE, TARGET = "this cat is very large", "este gato es muy grande"


def test_the_error_rate_of_a_case_made_by_hand() -> None:
    """|A| = 4, |S| = 3, |A ∩ S| = 2, |A ∩ P| = 3: 1 - 5/7."""
    gold = GoldAlignment.of("1-1 2-2 3-3", "3-4", first=1)
    assert gold.possible == {(0, 0), (1, 1), (2, 2), (2, 3)}
    found = read_links("0-0 1-1 2-3 3-0")
    scores = alignment_scores([found], [gold])
    assert scores.error == pytest.approx(1 - 5 / 7)
    assert (scores.precision, scores.recall) == (pytest.approx(3 / 4), pytest.approx(2 / 3))
    assert alignment_scores([gold.sure], [gold]).error == 0
    two = alignment_scores([found, gold.sure], [gold, gold])
    assert two.error == pytest.approx(1 - (5 + 6) / (7 + 6)), "counts are summed over sentences"
    assert alignment_scores([frozenset()], [gold]).error == 1


def test_links_are_read_and_written() -> None:
    assert write_links({(2, 0), (0, 1)}, first=1) == "1-2 3-1"
    assert read_links("1-2 3p1", first=1) == {(0, 1), (2, 0)}
    for wrong in ("1", "1-x", "-1-2", "0-1"):
        with pytest.raises(UserError, match="is no link"):
            read_links(wrong, first=1)


def test_the_diagonal_joins_first_and_last() -> None:
    assert diagonal(3, 5) == {(0, 0), (1, 2), (2, 4)}
    assert diagonal(1, 4) == {(0, 0)}


def test_directions_are_joined() -> None:
    forward, backward = frozenset({(0, 0), (1, 1), (2, 1)}), frozenset({(0, 0), (1, 1), (3, 3)})
    assert joined_links(forward, backward) == {(0, 0), (1, 1), (2, 1)}


def test_links_are_between_words_as_they_are_given() -> None:
    translator = saccade.load("en-es")
    layers = attention_layers(translator, translator.given(SOURCE, TARGET))
    cross = [(one.name, head) for one in layers if one.kind == "cross" for head in range(one.heads)]
    pair = read_pair(translator, SOURCE, TARGET)
    assert pair.source == SOURCE.split()
    for weights in pair.weights.values():
        assert weights.shape == (5, 5)
        assert (weights.sum(axis=1) <= 1 + 1e-5).all()
    spaced = read_pair(translator, "the dog ' s house , and mine .", "la casa del perro , y la mía .", tokenized=True)
    assert len(spaced.source) == 9
    gold = [GoldAlignment(frozenset((i, i) for i in range(5)), frozenset((i, i) for i in range(5)))]
    chosen = choose_by_gold([pair], gold)
    assert pair.links(chosen) == gold[0].sure
    assert set(chosen.heads) <= set(cross)
    assert Aligner((cross[0],), "reading").spelt(layers) == "cross:1.1@reading"


def test_tokenized_texts_are_joined_as_one_writes_them() -> None:
    assert joined("L ' accord sur la zone , signé ( en août ) .") == "L'accord sur la zone, signé (en août)."


def test_the_command_aligns_texts_files_and_tables(tmp_path: Path) -> None:
    said = ask("align", "en-es", SOURCE, TARGET, "--first", "1")
    assert said.out == "1-1 2-2 3-3 4-4 5-5\n"
    (tmp_path / "a.en").write_text(f"{SOURCE}\n\nhello\n", "utf-8")
    (tmp_path / "a.es").write_text(f"{TARGET}\n\nhola\n", "utf-8")
    said = ask("align", "en-es", tmp_path / "a.en", tmp_path / "a.es")
    assert said.lines == ["0-0 1-1 2-2 3-3 4-4", "", "0-0"]
    (tmp_path / "t.tsv").write_text(f"{SOURCE}\t{TARGET}\n", "utf-8")
    links = json.loads(ask("align", "en-es", tmp_path / "t.tsv", "--format", "json").out)["links"]
    assert links == [[i, i] for i in range(5)]
    assert ask("align", "diagonal", "a b c", "d e f").out == "0-0 1-1 2-2\n"
    (tmp_path / "b.es").write_text("one\n", "utf-8")
    insist_one_line(ask("align", "en-es", tmp_path / "a.en", tmp_path / "b.es"), 1, ["3 lines", "1"])


def test_heads_are_chosen_without_gold_and_scored_with_it(tmp_path: Path) -> None:
    nouns = {"cat": "gato", "dog": "perro", "book": "libro", "bread": "pan", "house": "casa", "boy": "niño"}
    rows = [f"this {one} is very large\teste {other} es muy grande" for one, other in nouns.items()]
    rows += [f"i see the {one}\tveo el {other}" for one, other in nouns.items()]
    (tmp_path / "some.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    said = ask("align", "en-es", "--choose", tmp_path / "some.tsv", "--format", "json")
    heads = json.loads(said.out)["heads"]
    assert ask("align", "en-es", SOURCE, TARGET, "--heads", heads).out == "0-0 1-1 2-2 3-3 4-4\n"
    (tmp_path / "gold.tsv").write_text(
        f"english\tspanish\tsure\tpossible\n{SOURCE}\t{TARGET}\t1-1 2-2\t3-3 4-4\n", "utf-8"
    )
    found = json.loads(ask("align", "en-es", "--gold", tmp_path / "gold.tsv", "--heads", heads, "--format", "json").out)
    # Five links, of which two are sure and four possible: 1 - 6/7.
    assert [round(one["error"], 6) for one in found.values()][-1] == round(1 - 6 / 7, 6)
    assert np.isclose(next(iter(found.values()))["error"], 1 - 6 / 7), "here the diagonal is right, too"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["en-es", "one"], "the translation is missing"),
        (["en-es"], "give a text and its translation"),
        (["tagger", "one", "two"], "no translator"),
        (["en-es", "one", "uno", "--heads", "cross:9.1"], "counted from 1"),
        (["en-es", "one", "uno", "--heads", "1.1@then"], "neither"),
        (["diagonal", "--choose", "x.tsv"], "no heads"),
    ],
)
def test_wrong_words_are_said(arguments: list[str], said: str) -> None:
    insist_one_line(ask("align", *arguments), 2, [said])


# A head that is taught to align

LETTERS = {name: f"{name[::-1]}o" for name in ("one", "two", "three", "four", "five", "six", "seven", "eight")}


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Words written backwards, and in reverse order: the diagonal is wrong everywhere but in the middle."""
    folder, random = tmp_path_factory.mktemp("taught"), np.random.default_rng(0)
    rows = [random.choice(list(LETTERS), int(random.integers(2, 7))).tolist() for _ in range(400)]
    lines = [f"{' '.join(row)}\t{' '.join(LETTERS[word] for word in reversed(row))}\n" for row in rows]
    (folder / "train.tsv").write_text("".join(lines), "utf-8")
    (folder / "valid.tsv").write_text("".join(lines[:4]), "utf-8")
    stack = "layers = 1\nwidth = 32\nheads = 2\nfeedforward = 64\ndropout = 0.0\n"
    (folder / "toy.toml").write_text(
        f'task = "translation"\nname = "toy"\nalignment = {{layer = 1, head = 2, weight = 1.0}}\n'
        f'[data]\ntrain = ["train.tsv"]\nvalid = ["valid.tsv"]\n[tokens]\nvocabulary = 300\n'
        f"[model.encoder]\n{stack}[model.decoder]\n{stack}"
        "[train]\nsteps = 110\nbatch_tokens = 512\nwarmup = 20\nvalidate_every = 110\nadam = {rate = 5e-3}\n",
        "utf-8",
    )
    said = ask("train", folder / "toy.toml", "--data", folder, "--out", folder / "model")
    assert said.code == 0, said
    return folder / "model"


def test_a_head_learns_to_align_beside_the_translation(taught: Path) -> None:
    translator = saccade.load(taught)
    assert (translator.alignment.layer, translator.alignment.head) == (1, 2)
    random, errors = np.random.default_rng(1), {}
    rows = [random.choice(list(LETTERS), 5, replace=False).tolist() for _ in range(20)]
    pairs = [read_pair(translator, " ".join(row), " ".join(LETTERS[word] for word in reversed(row))) for row in rows]
    straight = frozenset((4 - j, j) for j in range(5))
    gold = [GoldAlignment(straight, straight) for _ in rows]
    for head in (0, 1):
        aligner = Aligner((("decoder.blocks.0.cross_attention", head),), "reading")
        errors[head] = alignment_scores([pair.links(aligner) for pair in pairs], gold).error
    assert errors[1] < 0.1
    assert errors[0] > 0.3, "the other head does as it likes"
    said = ask("align", taught, " ".join(rows[0]), " ".join(LETTERS[word] for word in reversed(rows[0])))
    assert said.lines == [write_links(pairs[0].links(Aligner((("decoder.blocks.0.cross_attention", 1),), "reading")))]


def test_a_table_learns_which_tokens_translate_each_other() -> None:
    from saccade.data.ragged import Ragged
    from saccade.data.translation_table import learn_table

    random = np.random.default_rng(0)
    sources = [random.integers(0, 10, 6).tolist() for _ in range(300)]
    targets = [[10 + (3 * token) % 10 for token in reversed(row)] for row in sources]
    table = learn_table(Ragged.of(sources), Ragged.of(targets), 20).astype(np.float32)
    for token in range(10):
        assert table[token].argmax() == 10 + (3 * token) % 10
        assert table[token].max() > 0.5


def test_a_head_that_is_not_there_cannot_be_taught(taught: Path) -> None:
    recipe = taught.parent / "toy.toml"
    said = ask("train", recipe, "--data", taught.parent, "--out", taught.parent / "other", "--set", "alignment.head=3")
    insist_one_line(said, said.code, ["alignment is of layer 1, head 3; the decoder has 1 layers of 2 heads"])
