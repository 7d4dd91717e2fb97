"""Files as inputs of commands: files, folders, globs, standard input; one line for each, in order."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from torch import nn

from saccade.errors import UserError
from saccade.folder import ModelFolder
from saccade.look.record import Looks
from saccade.pipelines.answer import Answer
from saccade.pipelines.pipeline import Pipeline, Report, Request
from saccade.pipelines.table import TASKS
from saccade.runtime.open import Choice
from saccade.sources.picture import PictureItem, PictureSource
from saccade.sources.picture_question import PictureQuestionItem, PictureQuestionSource
from saccade.weights import write_folder
from tiny import SENTENCES, Said, ask, insist_one_line, tiny_vocabulary, write_tiny_model


@dataclass(frozen=True)
class Brightness(Answer):
    """How bright a picture is."""


class Lamp(Pipeline[PictureItem, Brightness]):
    """Says how bright pictures are. It has no model."""

    source = PictureSource()
    choice = Choice("exact", "none", "it has no model")

    @classmethod
    def open(cls, folder: ModelFolder, how: Any = None) -> "Lamp":
        return cls()

    def answer_items(
        self, items: Sequence[PictureItem], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[Brightness | UserError]:
        found = [float(item.pixels_HWC.mean()) for item in items]
        report(len(items), len(items))
        return [
            Brightness(item.name, f"{place}: {mean:.0f}", mean, pipeline=self)
            for item, mean, place in zip(items, found, places, strict=True)
        ]

    def look(self, answer: Brightness) -> Looks:
        raise NotImplementedError


class AskedLamp(Pipeline[PictureQuestionItem, Brightness]):
    """Says how bright a picture is, and what was asked."""

    source = PictureQuestionSource()
    choice = Lamp.choice

    @classmethod
    def open(cls, folder: ModelFolder, how: Any = None) -> "AskedLamp":
        return cls()

    def answer_items(
        self, items: Sequence[PictureQuestionItem], requests: Sequence[Request], places: Sequence[int], report: Report
    ) -> list[Brightness]:
        return [
            Brightness(self.source.label(item), f"{item.question.text} {item.picture.pixels_HWC.mean():.0f}", 0.0)
            for item in items
        ]

    def look(self, answer: Brightness) -> Looks:
        raise NotImplementedError


ROW = replace(
    TASKS["translation"],
    name="brightness",
    verb="run",
    pipeline=f"{__name__}:Lamp",
    takes="saccade.sources.picture:PictureSource",
    limits={},
)
ASKED_ROW = replace(
    ROW,
    name="asked",
    pipeline=f"{__name__}:AskedLamp",
    takes="saccade.sources.picture_question:PictureQuestionSource",
)


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two models, a folder of pictures, and other files."""
    for row in (ROW, ASKED_ROW):
        monkeypatch.setitem(TASKS, row.name, row)
        table = {"task": row.name, "name": row.name, "model": {}}
        write_folder(
            tmp_path / row.name, table, nn.Linear(1, 1), tiny_vocabulary().tokenizer.to_str(), storage="float32"
        )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "drawn" / "deep").mkdir(parents=True)
    (tmp_path / "drawn" / ".hidden").mkdir()
    for name, grey in {
        "b.png": 20,
        "a.PNG": 10,
        "c.jpg": 30,
        "deep/d.bmp": 40,
        ".e.png": 0,
        ".hidden/f.png": 0,
    }.items():
        Image.fromarray(np.full((4, 4), grey, np.uint8)).save(tmp_path / "drawn" / name)
    (tmp_path / "drawn" / "notes.txt").write_text("no picture")
    return tmp_path


def picture(grey: int) -> bytes:
    written = io.BytesIO()
    Image.fromarray(np.full((4, 4), grey, np.uint8)).save(written, "PNG")
    return written.getvalue()


def answered(said: Said) -> list[str]:
    assert (said.code, said.err) == (0, ""), said
    return said.lines


def test_files_are_answered_in_the_order_given(room: Path) -> None:
    assert answered(ask("run", "brightness", "drawn/c.jpg", "drawn/b.png")) == ["0: 30", "1: 20"]


def test_a_folder_is_its_files_of_the_right_kind_sorted(room: Path) -> None:
    said = ask("run", "brightness", "drawn", "--format", "json")
    records = [json.loads(line) for line in answered(said)]
    assert [record["source"] for record in records] == ["drawn/a.PNG", "drawn/b.png", "drawn/c.jpg", "drawn/deep/d.bmp"]
    assert [record["text"] for record in records] == ["0: 10", "1: 20", "2: 30", "3: 40"]


def test_a_glob_is_what_it_matches_sorted(room: Path) -> None:
    assert answered(ask("run", "brightness", "drawn/*.[jp][pn]g")) == ["0: 20", "1: 30"]
    assert answered(ask("run", "brightness", "drawn/**/*.bmp", "drawn/b*")) == ["0: 40", "1: 20"]


def test_a_file_whose_name_looks_like_a_glob_is_a_file(room: Path) -> None:
    (room / "x[1].png").write_bytes(picture(7))
    (room / "x1.png").write_bytes(picture(8))
    assert answered(ask("run", "brightness", "x[1].png")) == ["0: 7"]


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_standard_input_is_one_file(room: Path, arguments: list[str]) -> None:
    assert answered(ask("run", "brightness", *arguments, stdin=picture(77))) == ["0: 77"]
    assert answered(ask("run", "brightness", "drawn/b.png", "-", stdin=picture(77))) == ["0: 20", "1: 77"]


def test_many_files_stream_in_order(room: Path) -> None:
    for number in range(200):
        (room / f"{number:03}.png").write_bytes(picture(number))
    assert answered(ask("run", "brightness", "*.png")) == [f"{number}: {number}" for number in range(200)]


def test_an_unreadable_file_is_one_line_and_the_others_are_answered(room: Path) -> None:
    (room / "damaged.png").write_bytes(picture(9)[:40])
    said = ask("run", "brightness", "drawn/b.png", "damaged.png", "none.png", "drawn/notes.txt", "drawn/c.jpg")
    assert said.code == 1
    assert said.lines == ["0: 20", "", "", "", "4: 30"], "output line n answers input n"
    errors = said.err.splitlines()
    assert len(errors) == 3
    for line, name in zip(errors, ["damaged.png", "none.png", "drawn/notes.txt"], strict=True):
        assert line.startswith(f"saccade: {name}: ")
    records = [json.loads(line) for line in ask("run", "brightness", "none.png", "--format", "json").lines]
    assert records == [{"source": "none.png", "text": ""}]


def test_nothing_that_matches_is_one_clear_line(room: Path) -> None:
    (room / "empty").mkdir()
    insist_one_line(ask("run", "brightness", "empty"), 1, ["empty", ".png"])
    insist_one_line(ask("run", "brightness", "*.gif"), 1, ["*.gif", "no file matches"])


def test_a_question_goes_with_every_picture(room: Path) -> None:
    assert answered(ask("run", "asked", "drawn/b.png", "drawn/c.jpg", "--question", "how?")) == ["how? 20", "how? 30"]
    assert answered(ask("run", "asked", "drawn/b.png\twhy?", "drawn/c.jpg\thow?")) == ["why? 20", "how? 30"]
    insist_one_line(ask("run", "asked", "drawn/b.png"), 2, ["--question"])
    insist_one_line(ask("run", "brightness", "drawn/b.png", "--question", "how?"), 2, ["--question"])


def test_pictures_are_given_to_python_as_they_are(room: Path) -> None:
    lamp, pixels = Lamp(), np.full((2, 2), 5, np.uint8)
    assert lamp(pixels).text == lamp(Image.fromarray(pixels)).text == lamp(picture(5)).text == "0: 5"
    assert [answer.text for answer in lamp(file for file in ("drawn/b.png", pixels))] == ["0: 20", "1: 5"]
    assert AskedLamp()((pixels, "how?")).text == "how? 5"
    assert AskedLamp()([(pixels, "how?"), ("drawn/b.png", "why?")])[1].text == "why? 20"


# Where answers go


def test_answers_go_to_a_file(room: Path) -> None:
    model = write_tiny_model(room / "tiny")
    said = ask("run", model, *SENTENCES)
    written = ask("run", model, *SENTENCES, "-o", "out.txt")
    assert (written.code, written.out, written.err) == (0, "", "")
    assert (room / "out.txt").read_text("utf-8") == said.out
    assert answered(ask("run", "brightness", "drawn", "-o", "out.txt")) == []
    assert len((room / "out.txt").read_text("utf-8").splitlines()) == 4
    assert sorted(room.glob(".writing*")) == []


def test_a_file_of_answers_that_cannot_be_written_is_one_line(room: Path) -> None:
    model = write_tiny_model(room / "tiny")
    insist_one_line(ask("run", model, "one", "-o", "no/such/folder.txt"), 1, ["no/such/folder.txt"])
    insist_one_line(ask("run", model, "one", "-o", "drawn"), 2, ["drawn", "a folder"])


@pytest.mark.parametrize(
    "verb", ["translate", "complete", "score", "prompt", "correct", "pronounce", "fill", "classify", "tag", "run"]
)
def test_every_verb_that_answers_can_write_a_file_and_be_quiet(verb: str) -> None:
    said = ask(verb, "--help")
    assert "--output" in said.out
    assert "--quiet" in said.out


def test_a_dash_is_standard_input_for_texts_too(room: Path) -> None:
    model = write_tiny_model(room / "tiny")
    assert ask("run", model, "-", stdin=b"one\ntwo\n") == ask("run", model, stdin=b"one\ntwo\n")


def test_a_misspelt_command_is_one_line_with_the_nearest() -> None:
    insist_one_line(ask("trian"), 2, ["no command 'trian'; did you mean train?", "--help"])
    insist_one_line(ask("qqqq"), 2, ["no command 'qqqq'; saccade --help"])
