"""The comparisons of spelling, pronunciation and classes: what engines are asked, and what is counted; none is run."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from bench import __main__ as command
from bench import classes, pronunciation, spelling
from bench.engines import words
from bench.engines.g2p_en import stand_ins, without_stress
from bench.engines.words import Speaker, Speller, change_runs, change_words, measure_speaker, measure_speller
from bench.machine import Machine
from bench.process import EngineError
from bench.settings import Settings
from bench.spelling import Contestant, Figures, Material, Run, best_ways, goals, judge
from hypothesis import given
from hypothesis import strategies as st

from saccade.config import read_toml
from saccade.errors import UserError
from saccade.evaluate.metrics import Score
from saccade.study.transfer import Transfer, Trial
from saccade.tasks.recipes import recipe_path

# Peers are led through sentences


def test_plain_words_are_asked_about_and_all_else_stays() -> None:
    asked: list[str] = []

    def change(word: str) -> str | None:
        asked.append(word)
        return None if word == "stay" else word.upper()

    sentence = "We stay (at home), see www.a.com/x at 10:30!"
    assert change_words(sentence, change) == "WE stay (AT HOME), SEE www.a.com/x AT 10:30!"
    assert asked == ["We", "stay", "at", "home", "see", "at"]


def test_names_may_be_left_alone_but_not_what_begins_a_sentence() -> None:
    sentence = "Teh man sees Tmo. Adn I'v gone, and I to."
    assert change_words(sentence, lambda word: f"<{word}>", names=False) == (
        "<Teh> <man> <sees> Tmo. <Adn> <I'v> <gone>, <and> <I> <to>."
    )


def test_words_are_taken_together_up_to_punctuation() -> None:
    sentence = "Not here, said he  then: 12 men a round."
    assert change_runs(sentence, lambda run: f"<{run}>") == "<Not here>, <said he>  <then>: 12 <men a round>."


@given(st.text("ab I'’.,2 \nÉ", max_size=40))
def test_nothing_changed_is_the_same_sentence(sentence: str) -> None:
    assert change_words(sentence, lambda word: word) == sentence
    assert change_words(sentence, lambda _: None, names=False) == sentence
    assert change_runs(sentence, lambda run: run) == sentence


# What engines are asked


class Fake:
    """Remembers what it was given."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def answer(self, texts: Sequence[str]) -> list[str]:
        self.calls.append(list(texts))
        return [text.upper() for text in texts]

    def suggest(self, texts: Sequence[str]) -> list[list[str]]:
        return [[text.upper(), *"bcdefg"] for text in texts]


def test_the_first_sentences_are_timed_and_all_are_answered_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "TIMED", 2)
    fake = Fake()
    work = {"noisy": ["a", "b", "c"], "clean": ["x", "y", "z"], "words": ["w"]}
    speller = Speller("fake", fake.answer, fake.suggest)
    timed = measure_speller(speller, work, answers=False, suggestions=False)
    assert timed.keys() == {"engine", "seconds", "timed"}
    assert timed["timed"] == 2
    assert fake.calls[-1] == ["a", "b"]
    found = measure_speller(speller, work, answers=True, suggestions=True)
    assert found["noisy"] == ["A", "B", "C"]
    assert found["clean"] == ["X", "Y", "Z"]
    assert found["words"] == [["w", "b", "c", "d", "e"]]


def test_fewer_words_than_are_timed_are_all_answered() -> None:
    fake = Fake()
    found = measure_speaker(Speaker("fake", fake.answer), {"words": ["a", "b"]}, answers=True)
    assert (found["words"], found["timed"]) == (["A", "B"], 2)
    assert [] not in fake.calls  # an engine need not know what to do with nothing


# Spelling

TEST = Material(
    noisy=["teh cat sat", "a big dgo"],
    clean=["the cat sat", "a big dog"],
    words=["teh", "dgo"],
    accepted=[["the"], ["dog", "dig"]],
    told=["2 sentences"],
)
BAD = ["the cat sat", "a bug dgo"]


def score(value: float) -> Score:
    return Score("", value, 0.01, "", 4)


def run_of(accuracy: float, *, corrected: float = 0.8, introduced: float = 0.0, seconds: float = 1.0) -> Run:
    figures = Figures(score(accuracy), score(corrected), score(introduced), score(introduced))
    return Run("fake", figures, {1: score(0.5), 5: score(0.7)}, [seconds])


def test_a_speller_is_judged_on_misspelt_and_on_clean_sentences_and_on_words() -> None:
    clean = ["the cat sat", "a big hog"]
    found = {"engine": "fake", "noisy": BAD, "clean": clean, "words": [["ten", "the"], ["dig"]]}
    run = judge(TEST, found)
    assert run.figures.accuracy.value == pytest.approx(4 / 6)
    assert run.figures.corrected.value == pytest.approx(1 / 2)
    assert run.figures.introduced.value == pytest.approx(1 / 4)
    assert run.figures.spoilt.value == pytest.approx(1 / 6)
    assert (run.at[1].value, run.at[5].value) == (0.5, 1.0)


@pytest.mark.parametrize("part", ["noisy", "clean", "words"])
def test_a_speller_that_loses_something_is_no_speller(part: str) -> None:
    found: dict[str, Any] = {"engine": "fake", "noisy": TEST.clean, "clean": TEST.clean, "words": [["the"], ["dog"]]}
    with pytest.raises(EngineError, match="fake"):
        judge(TEST, found | {part: found[part][:1]})


def test_of_the_ways_of_a_program_the_best_counts_and_the_first_of_equals() -> None:
    ours = Contestant("saccade", "", "corrector", ())
    ways = [Contestant("symspellpy", way, "symspell", ()) for way in ("words", "names", "compound")]
    runs = {ours: run_of(0.1), ways[0]: run_of(0.5), ways[1]: run_of(0.6), ways[2]: run_of(0.6)}
    assert best_ways(runs) == [ours, ways[1]]


def test_what_is_wanted_is_reached_at_its_edge_and_not_below() -> None:
    peers = {"pyspellchecker": run_of(0.75, seconds=4.0), "symspellpy": run_of(0.875)}
    reached = goals(run_of(0.95, corrected=0.75, introduced=0.005), peers)
    assert [there for _, there in reached] == [True] * 7
    missed = goals(run_of(0.93, corrected=0.74, introduced=0.0051, seconds=2.0), peers)
    assert [there for _, there in missed] == [False, True, True, False, False, False, False]
    near = goals(run_of(0.95), {"symspellpy": run_of(0.91)})
    assert [there for what, there in near if "symspellpy" in what] == [False]
    assert not [what for what, _ in near if "time" in what]  # nothing to compare it with


def test_all_answer_once_and_only_those_that_count_are_timed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []

    def measured(module: str, *arguments: object, **_: object) -> dict[str, Any]:
        calls.append([module, *map(str, arguments[1:])])
        found: dict[str, Any] = {"engine": module, "seconds": float(len(calls))}
        if "--answers" in arguments:
            found |= {"noisy": TEST.clean if "good" in arguments else BAD, "clean": TEST.clean}
        return found | ({"words": [["the"], ["dog"]]} if "--suggestions" in arguments else {})

    monkeypatch.setattr(spelling, "measure_apart", measured)
    monkeypatch.setattr(Machine, "look", lambda self, place: self)
    monkeypatch.setattr(Machine, "__str__", lambda self: "a machine")
    contestants = [
        Contestant("saccade", "", "own", ("good",)),
        Contestant("pyspellchecker", "words", "peer", ("bad",)),
        Contestant("pyspellchecker", "names", "peer", ("good",), suggests=False),
    ]
    settings = Settings(repeats=2)
    machine, runs = spelling.measure(settings, contestants, TEST, tmp_path / "work.json")
    assert calls == [
        ["bench.engines.own", "good", "--answers", "--suggestions"],
        ["bench.engines.peer", "bad", "--answers", "--suggestions"],
        ["bench.engines.peer", "good", "--answers"],
        ["bench.engines.own", "good"],
        ["bench.engines.peer", "good"],
    ]
    report = spelling.describe(settings, TEST, machine, runs)
    assert [row[0] for row in report.rows] == ["bench.engines.own", "bench.engines.peer", "doing nothing"]
    assert [row[-1] for row in report.rows] == ["0.625", "1.000", "–"]  # (1 + 4) / 2 and (3 + 5) / 2 seconds
    assert {len(row) for row in report.rows} == {len(report.header)}
    assert report.rows[1][5] == report.rows[0][5]  # words alone were asked of another way of the same program
    assert report.rows[2][1].startswith("0.6667")


# Pronunciation


def test_a_word_is_read_once_with_all_its_pronunciations(tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    path.write_text("READ\tR EH D\nO'ER\tAO R\nREAD\tR IY D\n\n", encoding="utf-8")
    accepted = pronunciation.read_test(path)
    assert accepted == {"read": ["R EH D", "R IY D"], "o'er": ["AO R"]}
    wrong, phonemes = pronunciation.judge({"engine": "fake", "words": ["R IY D", "AO"]}, accepted)
    assert wrong.value == pytest.approx(50)
    assert phonemes.value == pytest.approx(100 / 5)
    with pytest.raises(EngineError, match="2 words"):
        pronunciation.judge({"engine": "fake", "words": ["R IY D"]}, accepted)
    path.write_text("READ R EH D\n", encoding="utf-8")
    with pytest.raises(UserError, match="line 1"):
        pronunciation.read_test(path)


def test_stress_is_left_out_and_what_is_no_phoneme_stays_wrong() -> None:
    assert without_stress(["AH0", "B", "AW1", "T"]) == "AH B AW T"
    assert without_stress(["<unk>", "ER2"]) == "<unk> ER"


def test_the_package_finds_its_data_without_the_network() -> None:
    modules: dict[str, Any] = stand_ins()
    assert modules["nltk"].data.find("corpora/cmudict.zip")
    assert modules["nltk.corpus"].cmudict.dict() == {}
    assert callable(modules["nltk.tokenize"].TweetTokenizer().tokenize)


# Classes


def test_mean_interval_and_deviation_of_seeds() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    # s = √2.5; t of four degrees of freedom, 2.776, times s / √5
    assert classes.half_interval(values) == pytest.approx(2.776 * (2.5 / 5) ** 0.5)
    assert classes.seeds_cell(values, 2) == "3.00 ± 1.96 (1.58)"
    assert classes.seeds_cell([4.0], 1) == "4.0"


def test_a_figure_that_is_not_kept_of_every_seed_is_left_open() -> None:
    whole = {"accuracy": 80.0, "macro F1": 70.0, "F1 of '1'": 75.0, "Matthews": 0.5}
    assert classes.own_cells([whole, whole])[1] == "70.00 ± 0.00 (0.00)"
    assert classes.own_cells([whole, {"accuracy": 82.0}])[1:] == ["–"] * 3


SCORES = [Score("accuracy", 81.0, None, ""), Score("Matthews", 0.25, None, "", 4)]


def test_what_was_trained_is_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[str] = []

    def train_trial(table: dict[str, Any], trial: Trial, folders: Sequence[Path]) -> list[Score]:
        trained.append(trial.key)
        return SCORES

    monkeypatch.setattr(classes, "train_trial", train_trial)
    # One training is there, of `saccade transfer`, which keeps a single figure.
    study = Transfer(read_toml(recipe_path("sentiment")), "accuracy", {Trial("", 0, 1).key: 79.0})
    study.save(tmp_path)
    for _ in range(2):
        found = classes.run_trials("sentiment", ["", "bert-mini"], [1, 2], [], tmp_path)
        assert trained == [Trial("bert-mini", 0, 1).key, Trial("", 0, 2).key, Trial("bert-mini", 0, 2).key]
        assert found[Trial("", 0, 1).key] == {"accuracy": 79.0}
        assert found[Trial("", 0, 2).key] == {"accuracy": 81.0, "Matthews": 0.25}
    assert len(Transfer.read(tmp_path, study.recipe).found) == 4


def test_figures_of_another_training_are_not_the_studys(tmp_path: Path) -> None:
    table, trial = {"name": "mine"}, Trial("", 0, 1)
    Transfer(table, "accuracy", {trial.key: 79.0}).save(tmp_path)
    (tmp_path / "figures.json").write_text(json.dumps({trial.key: {"accuracy": 81.0, "Matthews": 0.25}}))
    assert classes.Kept.read(tmp_path, table).get(trial) == {"accuracy": 79.0}


def test_tfidf_is_chosen_by_the_part_to_choose_by() -> None:
    pytest.importorskip("sklearn")
    from bench.engines.tfidf import FEATURES, STRENGTHS, choose, fit_all, represent

    from saccade.data.table import Examples

    train = Examples(["good film", "bad film", "good play", "bad play"], None, [1, 0, 1, 0], ["0", "1"])
    tried = list(fit_all(train, Examples(["a good one", "a bad one"], None, [1, 0], ["0", "1"])))
    assert len(tried) == len(FEATURES) * len(STRENGTHS)
    best = choose(tried)
    assert best.valid == max(one.valid for one in tried) == 100
    assert best is next(one for one in tried if one.valid == 100)
    alone = represent(best.vectorizer, train)
    pairs = represent(best.vectorizer, Examples(train.texts, train.texts[::-1], train.labels, train.classes))
    assert pairs.shape == (4, 3 * alone.shape[1])


# The command


def arguments(monkeypatch: pytest.MonkeyPatch, *given: str) -> Any:
    monkeypatch.setattr(sys, "argv", ["bench", *given])
    return command._read_arguments()


def test_a_model_goes_to_the_comparison_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    names, _, models = arguments(monkeypatch, "spelling", "classes", "--model", "mine", "--init", "other")
    assert names == ["spelling", "classes"]
    assert (models["spelling"], models["classes"]) == ({"model": "mine"}, {"init": "other"})
    assert arguments(monkeypatch, "spelling")[2] == {}


def test_one_model_cannot_be_for_two(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments(monkeypatch, "spelling", "pronunciation", "--model", "mine")
    assert "one comparison" in capsys.readouterr().err
