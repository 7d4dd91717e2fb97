"""The bundled models of letters: they mend and pronounce, leave alone what is right, and are as their cards say."""

import os
import re
from pathlib import Path

import pytest

import saccade
from saccade.folder import read_folder
from saccade.pipelines.load import model_path
from saccade.pipelines.pipeline import Request
from saccade.tasks.recipes import task_named

DATA = Path(os.environ.get("SACCADE_DATA", "data"))


def corrected(text: str) -> str:
    (answer,) = saccade.load("speller").answer([text], Request())
    found: str = answer.text
    return found


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("Did you recieve a leter form him?", "Did you receive a letter from him?"),
        ("He went form London to Paris.", "He went from London to Paris."),
        ("Their is a cat on teh roof.", "There is a cat on the roof."),
        ("Tom adn Mary whent to http://exmaple.com/teh", "Tom and Mary went to http://exmaple.com/teh"),
    ],
)
def test_misspellings_are_mended_by_their_sentence(typed: str, meant: str) -> None:
    assert corrected(typed) == meant


@pytest.mark.parametrize(
    "text",
    [
        "Please fill in this form.",
        "This is a clean sentence, isn't it?",
        "Tom's e-mail is tom@exmaple.org -- see README.md, line 42!",
        "日本語 и русский 👍\t...  (3.14)",
        "",
        "?!",
    ],
)
def test_what_is_right_comes_out_as_it_was(text: str) -> None:
    assert corrected(text) == text


def test_words_are_pronounced() -> None:
    answers = saccade.load("pronouncer").answer(["knight", "saccade", "phone box"], Request())
    assert [answer.text for answer in answers] == ["N AY T", "S AE K EY D", "F OW N / B AA K S"]
    assert answers[0].ipa == "naɪt"


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "first", "needs"),
    [("speller", "word accuracy", "spelling/codespell.tsv.gz"), ("pronouncer", "WER", "cmudict_g2p/test.tsv.gz")],
)
def test_the_card_states_what_is_measured(name: str, first: str, needs: str) -> None:
    if not (DATA / needs).exists():
        pytest.skip(f"{needs} is not in $SACCADE_DATA")
    folder = read_folder(model_path(name))
    task = task_named(folder.config.task)
    found = task.evaluate(saccade.load(name), folder, [], [DATA], Request())[0].value
    stated = re.search(rf"test: {first} ([\d.]+)", (folder.path / "README.md").read_text(encoding="utf-8"))
    assert stated is not None
    assert found == pytest.approx(float(stated[1]), rel=0.005)
