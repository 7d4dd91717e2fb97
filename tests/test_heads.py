"""Heads removed in turn: roles are measured on tables made by hand, costs are those of interventions; `look` with parts
taken away."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import saccade
from saccade.axes import Pieces
from saccade.explaining.heads import HeadStudy, removed_in_order, role_places, share_of, study_heads
from saccade.explaining.inputs import answered, carried_part, examples
from saccade.explaining.interventions import exactly, sweep
from saccade.explaining.places import AttentionLayer
from saccade.look.head_grid import entropy_share
from saccade.look.record import LayerLooks, Looks
from saccade.sites import Kind
from tiny import ask, insist_one_line

SENTENCE = "this cat is very large"
WORDS = Pieces(labels=(" the", " cat", ",", " the", " dog", "(end)"), alone=(5,))


def looks(weights_TS: np.ndarray, kind: Kind = "encoder", rows: Pieces = WORDS) -> LayerLooks:
    return LayerLooks("one", kind, "source", weights_TS[None].astype(np.float32), rows, WORDS)


def at(*columns: int) -> np.ndarray:
    """A table whose rows look at one place each."""
    weights = np.zeros((len(columns), 6))
    weights[np.arange(len(columns)), columns] = 1
    return weights


@pytest.mark.parametrize(
    ("weights", "role"),
    [
        (at(5, 0, 1, 2, 3, 4), "previous"),
        (at(0, 1, 2, 3, 4, 5), "same place"),
        (at(1, 2, 3, 4, 5, 0), "next"),
        (at(3, 3, 3, 0, 3, 3), "same word"),
        (at(2, 2, 2, 2, 2, 2), "punctuation"),
        (at(5, 5, 5, 5, 5, 5), "marks"),
        (np.full((6, 6), 1 / 6), "spread"),
    ],
)
def test_what_a_head_does_is_measured(weights: np.ndarray, role: str) -> None:
    one = looks(weights)
    study = HeadStudy(AttentionLayer("one", "encoder", "source", 1, 1), 1, entropies=[entropy_share(weights)])
    study.shares = {
        name: [found]
        for name, places in role_places(one).items()
        if (found := share_of(weights, places, some=name == "same word"))
    }
    assert study.role == role
    if role not in ("spread", "same word"):
        assert study.share(role)[0] >= 5 / 6


def test_the_diagonal_is_that_of_a_table_of_any_shape() -> None:
    rows = Pieces.letters("abc")
    places = role_places(looks(at(0, 2, 5), "cross", rows))["diagonal"]
    assert places.astype(int).tolist() == [[1, 1, 0, 0, 0, 0], [0, 1, 1, 1, 1, 0], [0, 0, 0, 0, 1, 1]]
    assert share_of(at(0, 2, 5), places) == (1.0, pytest.approx((2 + 4 + 2) / 18))


def test_entropy_is_a_share_of_the_largest() -> None:
    assert entropy_share(np.full((4, 8), 1 / 8)) == pytest.approx(1)
    assert entropy_share(at(1, 2, 3)) == 0
    causal = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None]
    assert entropy_share(causal) == pytest.approx(1), "what is not allowed is not missed"


def test_the_cost_of_a_head_is_the_mean_of_what_the_outputs_lose() -> None:
    translator = saccade.load("en-es")
    answers = [exactly(translator, text) for text in (SENTENCE, "we are eating bread")]
    *_, studies = study_heads(translator, answers)
    rows = [list(sweep(translator, answer)) for answer in answers]
    for number, study in enumerate(studies):
        assert study.label == rows[0][number].label
        expected = np.mean([-one[number].change_P.mean() for one in rows])
        assert study.cost == pytest.approx(expected, abs=1e-6)
    edits = removed_in_order(studies)
    assert edits[0][0] == min(studies, key=lambda one: one.cost).label
    assert [len(edit.without_heads) for _, edit in edits] == list(range(1, len(studies) + 1))


def test_inputs_are_drawn_alike_and_targets_are_taken() -> None:
    translator = saccade.load("en-es")
    part = carried_part(translator)
    some = examples(translator, [part], 4, seed=1)
    assert some == examples(translator, [part], 4, seed=1)
    assert some != examples(translator, [part], 4, seed=2)
    given = answered(translator, some, given=True)
    assert [one.text for one in given] == [one.target for one in some]


def test_the_command_prints_and_draws(tmp_path: Path) -> None:
    (tmp_path / "two.tsv").write_text("this cat is very large\teste gato es muy grande\nhello\thola\n", "utf-8")
    said = ask("heads", "en-es", tmp_path / "two.tsv", "-o", tmp_path / "heads.png", "--format", "json")
    rows = [json.loads(line) for line in said.lines]
    assert said.code == 0, said
    assert {row["kind"] for row in rows} == {"encoder", "decoder", "cross"}
    assert {row["inputs"] for row in rows} == {2}
    assert max(row["cost"] for row in rows) > 0.05
    assert Image.open(tmp_path / "heads.png").width > 300
    insist_one_line(ask("heads", "en-es", tmp_path / "none.tsv"), 1, ["no such file"])
    insist_one_line(ask("heads", "tagger", tmp_path / "two.tsv", "--bleu"), 2, ["only for a translator"])


# look


def test_look_without_prints_both_outputs_and_what_changes(tmp_path: Path) -> None:
    said = ask("look", "en-es", SENTENCE, "--without-word", "2", "--without-head", "1.1", "--format", "json")
    record = json.loads(said.out)
    assert "gato" in record["before"]
    assert "gato" not in record["after"]
    assert record["change"] < -3
    assert sum(one["after"] - one["before"] for one in record["pieces"]) == pytest.approx(record["change"], abs=1e-3)
    said = ask("look", "en-es", SENTENCE, "--without-layer", "cross:1", "-o", tmp_path / "both.png")
    assert said.lines[0] == "as it is: este gato es muy grande"
    assert said.lines[1].startswith("without:")
    wide = Image.open(tmp_path / "both.png").width
    assert ask("look", "en-es", SENTENCE, "-o", tmp_path / "one.png").code == 0
    assert wide > 1.3 * Image.open(tmp_path / "one.png").width


def test_look_draws_a_given_translation(tmp_path: Path) -> None:
    said = ask("look", "en-es", SENTENCE, "--target", "este gato es enorme", "-o", tmp_path / "given.svg")
    assert said.code == 0, said
    assert "enorme" in (tmp_path / "given.svg").read_text("utf-8")
    assert "log-probability -" in said.out
    assert "enorme" in ask("look", "en-es", SENTENCE, "--target", "este gato es enorme").out


def test_every_head_is_drawn_and_roll_out(tmp_path: Path) -> None:
    for name, options in (("heads", ["--every-head"]), ("rollout", ["--rollout"])):
        said = ask("look", "en-es", SENTENCE, *options, "-o", tmp_path / f"{name}.svg")
        assert said.code == 0, said
    layers = saccade.load("en-es")(SENTENCE).looks.layers
    drawn = (tmp_path / "heads.svg").read_text("utf-8")
    assert drawn.count("<image") == sum(len(one.weights_NTS) for one in layers)
    assert "rolled out through" in (tmp_path / "rollout.svg").read_text("utf-8")


@pytest.mark.parametrize("count", [40, 400])
def test_a_grid_of_heads_stays_a_picture_at_any_length(count: int, tmp_path: Path) -> None:
    from saccade.look.head_grid import draw_heads

    axis = Pieces.letters("a" * count)
    weights = np.random.default_rng(0).dirichlet(np.ones(count), (4, count)).astype(np.float32)
    one = LayerLooks("one", "encoder", "source", weights, axis, axis)
    draw_heads([Looks((one, one))], [""], tmp_path / "grid.png")
    picture = Image.open(tmp_path / "grid.png")
    assert picture.width < 1_600
    assert picture.height < 1_600


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--every-head"], "add -o"),
        (["--rollout", "--layer", "1"], "of all layers"),
        (["--without-cell", "3"], "a row and a column"),
        (["--without-cell", "3,4"], "no picture"),
        (["--without-head", "9.9"], "counted from 1"),
        (["--target", "x", "--prefix", "y"], "leave out --prefix"),
    ],
)
def test_wrong_words_are_said(arguments: list[str], said: str) -> None:
    insist_one_line(ask("look", "en-es", SENTENCE, *arguments), 2, [said])
