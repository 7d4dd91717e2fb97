"""Pictures in, and two memories: each toy is a file that trains, a file that answers and a row in the table. It trains
in seconds, answers, is looked into, and is served by the generic command."""

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saccade
from saccade.axes import Grid, Pieces
from saccade.errors import WrongUse
from saccade.look.record import Looks
from saccade.pipelines.table import TASKS, TaskRow
from tiny import Said, ask, insist_one_line
from toys.drawings import SHAPES, SIDES, write_drawings, write_table

ROWS = [
    TaskRow(
        name="naming",
        verb="name",
        home="toys.naming:NamingTask",
        pipeline="toys.namer:Namer",
        model="",
        help="Name what is drawn.",
        takes="saccade.sources.picture:PictureSource",
        files="a TSV of picture files and words",
    ),
    TaskRow(
        name="asking",
        verb="ask",
        home="toys.asking:AskingTask",
        pipeline="toys.asker:Asker",
        model="",
        help="Answer questions about what is drawn.",
        takes="saccade.sources.picture_question:PictureQuestionSource",
        files="a TSV of picture files, questions and words",
    ),
]
QUESTIONS = ("what is it?", "where?")
Drawn = list[tuple[Path, str, str]]


@pytest.fixture(scope="module", autouse=True)
def _two_more_tasks() -> Iterator[None]:
    TASKS.update({row.name: row for row in ROWS})
    yield
    for row in ROWS:
        del TASKS[row.name]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("toys")


@pytest.fixture(scope="module")
def namer(room: Path) -> Path:
    """The first toy, trained by the command."""
    drawn = write_drawings(room / "for naming", 240)
    table = write_table(room / "words.tsv", [(str(path), shape) for path, shape, _ in drawn])
    said = ask("train", "naming", table, "--out", room / "namer")
    assert said.code == 0, said
    assert "held-out drawings" in said.out + said.err
    return room / "namer"


@pytest.fixture(scope="module")
def asker(room: Path) -> Path:
    """The second toy, trained from Python."""
    drawn = write_drawings(room / "for asking", 240)
    rows = [(str(path), *pair) for path, *words in drawn for pair in zip(QUESTIONS, words, strict=True)]
    saccade.train("asking", write_table(room / "questions.tsv", rows), out=room / "asker", quiet=True)  # type: ignore[operator]
    return room / "asker"


@pytest.fixture(scope="module")
def unseen(room: Path) -> Drawn:
    return write_drawings(room / "unseen", 24, seed=7)


def answered(said: Said) -> list[str]:
    assert (said.code, said.err) == (0, ""), said
    return said.lines


def mostly(found: list[str], right: list[str]) -> None:
    """Chance is a third or a half; a toy that learnt its task has at most two of 24 wrong, whatever the machine."""
    assert sum(one == other for one, other in zip(found, right, strict=True)) >= 22, (found, right)


# Pictures in


def test_a_picture_is_named_by_the_generic_command(namer: Path, unseen: Drawn) -> None:
    mostly(answered(ask("run", namer, *(path for path, _, _ in unseen))), [shape for _, shape, _ in unseen])


def test_a_folder_of_pictures_is_named_in_json(namer: Path, unseen: Drawn) -> None:
    records = [json.loads(line) for line in answered(ask("run", namer, unseen[0][0].parent, "--format", "json"))]
    assert [record["source"] for record in records] == [str(path) for path, _, _ in unseen]
    mostly([record["text"] for record in records], [shape for _, shape, _ in unseen])


def test_a_picture_may_come_from_anywhere(namer: Path, unseen: Drawn) -> None:
    pipeline: Any = saccade.load(namer)
    path = unseen[1][0]
    found = pipeline(path).text
    assert pipeline(path.read_bytes()).text == found
    assert answered(ask("run", namer, stdin=path.read_bytes())) == [found]


def test_batched_is_alone_and_exact_is_packed(namer: Path, unseen: Drawn) -> None:
    pipeline: Any = saccade.load(namer)
    files = [path for path, _, _ in unseen]
    together = pipeline(files)
    assert [answer.text for answer in together] == [pipeline(file).text for file in files]
    assert [answer.text for answer in saccade.load(namer, "exact")(files)] == [answer.text for answer in together]


def test_a_named_picture_is_looked_into(namer: Path, unseen: Drawn, tmp_path: Path) -> None:
    pipeline: Any = saccade.load(namer)
    answer = pipeline(unseen[0][0])
    (cross,) = answer.looks.select("cross")
    assert isinstance(cross.columns, Grid)
    assert (cross.columns.height, cross.columns.width) == (4, 4)
    np.testing.assert_allclose(cross.weights_NTS.sum(axis=-1), 1, atol=1e-5)
    assert cross.weights_NTS.shape[1:] == (len(answer.ids) + 1, 16)
    with saccade.watch(pipeline) as heard:
        assert pipeline(unseen[0][0]).text == answer.text
    assert {look.kind for look in heard} == {"encoder", "decoder", "cross"}
    drawn = ask("look", namer, unseen[0][0], "-o", tmp_path / "looks.png")
    assert drawn.code == 0, drawn
    assert (tmp_path / "looks.png").stat().st_size > 1_000
    assert "cross-attention" in ask("run", namer, unseen[0][0], "--look").out
    answer.looks.save(tmp_path / "looks.safetensors")
    assert repr(Looks.load(tmp_path / "looks.safetensors")) == repr(answer.looks)


def test_a_toy_is_a_model_like_others(namer: Path, unseen: Drawn, room: Path) -> None:
    assert "naming" in ask("show", namer).out
    assert "naming" in ask("doctor", namer).out
    table = write_table(room / "test.tsv", [(str(path), shape) for path, shape, _ in unseen])
    (score,) = answered(ask("evaluate", namer, table))
    assert score.endswith("drawings")
    pipeline: Any = saccade.load(namer)
    answer = pipeline(unseen[0][0])
    assert answer.text in SHAPES
    assert pickle.loads(pickle.dumps(pipeline))(unseen[0][0]) == pickle.loads(pickle.dumps(answer)) == answer
    assert repr(pipeline).startswith("Namer('namer', naming, ")


# Two memories


def test_the_answer_follows_from_the_picture_and_the_question(asker: Path, unseen: Drawn) -> None:
    files = [path for path, _, _ in unseen]
    mostly(answered(ask("run", asker, *files, "--question", QUESTIONS[0])), [shape for _, shape, _ in unseen])
    mostly(answered(ask("run", asker, *files, "--question", QUESTIONS[1])), [side for _, _, side in unseen])


def test_questions_of_different_lengths_do_not_disturb_each_other(asker: Path, unseen: Drawn) -> None:
    pipeline: Any = saccade.load(asker)
    raws = [(path, QUESTIONS[place % 2]) for place, (path, _, _) in enumerate(unseen)]
    together = pipeline(raws)
    assert [answer.text for answer in together] == [pipeline(raw).text for raw in raws]
    assert together[1].text in SIDES
    assert together[1].source == f"{unseen[1][0]}\t{QUESTIONS[1]}"


def test_each_memory_is_looked_at_under_its_own_name(asker: Path, unseen: Drawn, tmp_path: Path) -> None:
    pipeline: Any = saccade.load(asker)
    looks = pipeline((unseen[0][0], QUESTIONS[1])).looks
    assert looks.memories == ["picture", "question"]
    ((picture,), (question,)) = (looks.select("cross", memory) for memory in looks.memories)
    assert isinstance(picture.columns, Grid)
    assert isinstance(question.columns, Pieces)
    assert question.columns.labels == (*QUESTIONS[1], "(end)")
    asked = ("--question", QUESTIONS[1])
    assert ask("look", asker, unseen[0][0], *asked, "-o", tmp_path / "looks.png").code == 0
    assert (tmp_path / "looks.png").stat().st_size > 1_000


def test_a_question_without_a_picture_and_a_picture_without_a_question_are_one_line(
    asker: Path, namer: Path, unseen: Drawn
) -> None:
    insist_one_line(ask("run", asker, unseen[0][0]), 2, ["--question"])
    insist_one_line(ask("run", namer, unseen[0][0], "--question", "where?"), 2, ["no question"])
    said = ask("run", asker, "none.png", "--question", "where?")
    assert (said.code, said.lines) == (1, [""])
    assert said.err.startswith("saccade: none.png: ")


@pytest.mark.parametrize("question", [7, None])
def test_a_question_that_is_no_text_is_one_line(asker: Path, unseen: Drawn, question: Any) -> None:
    pipeline: Any = saccade.load(asker)
    with pytest.raises(WrongUse):
        pipeline((unseen[0][0], question))
