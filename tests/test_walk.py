"""Walking: the language of SCAN, what is refused and mended, and a toy language that is learnt, asked and scored."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import saccade
from saccade.data.scan import COMMAND, WORDS, check_command, meaning
from saccade.data.text import read_pairs
from saccade.errors import UserError
from saccade.evaluate.walking import actions_right, exact_match
from saccade.pipelines.walker import CommandReader, Walker, plain_words
from tiny import ask

DATA = Path(os.environ.get("SACCADE_DATA", "data"))
LEFT, RIGHT, JUMP, WALK, LOOK = "I_TURN_LEFT", "I_TURN_RIGHT", "I_JUMP", "I_WALK", "I_LOOK"


@pytest.mark.parametrize(
    ("command", "actions"),
    [
        ("jump", [JUMP]),
        ("turn left twice", [LEFT, LEFT]),
        ("walk right", [RIGHT, WALK]),
        ("jump opposite left", [LEFT, LEFT, JUMP]),
        ("turn opposite right", [RIGHT, RIGHT]),
        ("turn around left", 4 * [LEFT]),
        ("look around right twice", 8 * [RIGHT, LOOK]),
        ("walk after jump thrice", [JUMP, JUMP, JUMP, WALK]),
        ("walk left and jump", [LEFT, WALK, JUMP]),
    ],
)
def test_a_command_means_its_actions(command: str, actions: list[str]) -> None:
    assert meaning(command) == actions


@pytest.mark.parametrize(
    "command", ["", "turn", "jump jump", "twice jump", "walk and", "jump and walk and run", "left", "jump opposite"]
)
def test_what_the_grammar_does_not_have_is_no_command(command: str) -> None:
    with pytest.raises(UserError, match="is no command of this language"):
        check_command(command)


@pytest.mark.data
def test_the_meaning_of_every_command_is_that_of_the_data() -> None:
    path = DATA / "scan" / "all.tsv.gz"
    if not path.exists():
        pytest.skip("scan is not in $SACCADE_DATA")
    pairs = read_pairs([path])
    assert len(pairs) == 20_910
    assert all(meaning(command) == actions.split() for command, actions in pairs)


READER = CommandReader(tuple(sorted(WORDS)), "scan")


@pytest.mark.parametrize(
    ("typed", "read", "mended"),
    [
        ("Jump twice!", "jump twice", {}),
        ("  walk LEFT, and   jump. ", "walk left and jump", {}),
        ("jmup around rigth", "jump around right", {"jmup": "jump", "rigth": "right"}),
        ("walkk thrce", "walk thrice", {"walkk": "walk", "thrce": "thrice"}),
    ],
)
def test_commands_are_read_as_they_are_known(typed: str, read: str, mended: dict[str, str]) -> None:
    assert READER.read(typed) == (read, mended)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("please jump twice", "'please': not among the words of this model; it knows after, and, around"),
        ("walk left and then run", "'then': not among the words of this model; it knows after, and, around"),
        ("walk left and then dance", "'then', 'dance': not among"),
        ("juggle left", "'juggle': not among"),
        ("walk and run and jump", "is no command of this language"),
        ("ju left", "'ju': not among"),
        ("jump jump", "'jump jump' is no command of this language"),
        (" ... ", "there is no command in"),
        ("</s>", "'</s>': not among"),
    ],
)
def test_what_is_not_known_is_named(typed: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        READER.read(typed)


def test_a_word_between_two_known_ones_is_not_guessed() -> None:
    with pytest.raises(UserError, match="'cat'"):
        CommandReader(("bat", "car", "hat")).read("cat")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        read, _ = READER.read(text)
    except UserError as error:
        read = f"refused: {error}"
    assert len(read.splitlines()) == 1
    assert read.startswith("refused: ") or (COMMAND.fullmatch(read) and len(read.split()) == len(plain_words(text)))


def test_scores_count_whole_sequences_and_places() -> None:
    done, truths = [["A", "B"], ["A"], [], ["B"]], [[["A", "B"]], [["A", "B"]], [["A"]], [["A"], ["B"]]]
    assert exact_match(done, truths).value == 50
    assert actions_right(done, truths).value == pytest.approx(100 * 4 / 6)


TOY = """
task = "walking"
name = "toy"
[data]
split = "toy"
train = ["{folder}/{{split}}.tsv"]
validated = 20
test = ["{folder}/{{split}}.tsv"]
language = "scan"
{model}
[search]
beam = 1
factor = 6.0
[train]
steps = 240
batch_tokens = 512
warmup = 10
smoothing = 0.0
validate_every = 120
select_by = "-loss"
adam = {{rate = 5e-3}}
"""
STACK = """[model.encoder]
layers = 1
width = 32
heads = 2
feedforward = 64
positions = {kind = "rotary"}
[model.decoder]
layers = 1
width = 32
heads = 2
feedforward = 64
positions = {kind = "rotary"}
"""
COMMANDS = [
    f"{verb}{side}{times}"
    for verb in ("walk", "jump", "look", "run")
    for side in ("", " left", " right", " opposite left", " opposite right")
    for times in ("", " twice", " thrice")
]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    room = tmp_path_factory.mktemp("walk")
    lines = [f"{command}\t{' '.join(meaning(command))}\n" for command in COMMANDS]
    (room / "toy.tsv").write_text("".join(lines), encoding="utf-8")
    (room / "toy.toml").write_text(TOY.format(folder=room, model=STACK), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saccade.train.log.draw_curve", lambda entries, path: None)
        said = ask("train", room / "toy.toml", "--out", room / "toy")
    assert said.code == 0, said.err
    assert "60 training pairs" in said.err
    return room / "toy"


def test_commands_are_followed(toy: Path) -> None:
    said = ask("walk", "jump left twice", "Jump opposit right", "please jump", "walk walk", "--model", toy)
    assert said.code == 1
    assert said.lines == [" ".join(2 * [LEFT, JUMP]), " ".join([RIGHT, RIGHT, JUMP]), "", ""]
    told = said.err.splitlines()
    assert len(told) == 3
    assert told[0].endswith("line 2: read 'opposit' as 'opposite'")
    assert "line 3: 'please': not among the words" in told[1]
    assert "line 4: 'walk walk' is no command" in told[2]


def test_json_tells_what_was_read(toy: Path) -> None:
    (row,) = map(json.loads, ask("walk", "Jmup twice", "--format", "json", "--model", toy).lines)
    assert row["source"] == "Jmup twice"
    assert row["read"] == "jump twice"
    assert row["actions"] == [JUMP, JUMP]
    assert row["mended"] == {"jmup": "jump"}


def test_batched_is_alone_and_exact_is_fast(toy: Path) -> None:
    walker, exact = saccade.load(toy), saccade.load(toy, "exact")
    assert isinstance(walker, Walker)
    together = [one.actions for one in walker(COMMANDS)]
    assert together == [walker(command).actions for command in COMMANDS] == [one.actions for one in exact(COMMANDS)]


def test_told_lengths_are_kept(toy: Path) -> None:
    walker = saccade.load(toy)
    lengths = [0, 1, 3, 9]
    done = walker.with_lengths(COMMANDS[:4], lengths)
    assert [len(one) for one in done] == lengths
    assert walker.with_lengths(COMMANDS[3:4], [9])[0] == done[3], "alone as beside others"


def test_the_oracle_is_reported_apart(toy: Path) -> None:
    exact, places, oracle = ask("evaluate", toy).lines
    assert exact.startswith("exact match 9") or exact.startswith("exact match 100")
    assert places.startswith("actions in place")
    assert oracle.startswith("exact match where the length is told (oracle)")


def test_looks_are_words_beside_actions(toy: Path, tmp_path: Path) -> None:
    walk = saccade.load(toy)("jump left twice")
    assert walk.looks.source == [" jump", " left", " twice", "(end)"]
    assert walk.looks.target == [LEFT, JUMP, LEFT, JUMP, "(end)"]
    said = ask("walk", "jump left twice", "--look", tmp_path / "look.png", "--model", toy)
    assert said.code == 0, said.err
    assert (tmp_path / "look.png").read_bytes()[:4] == b"\x89PNG"


def test_own_commands_are_held_out_and_trained_on(tmp_path: Path) -> None:
    lines = [f"go {way} {count}\t{' '.join([way.upper()] * int(count))}\n" for way in "abcdef" for count in "12345"]
    (tmp_path / "my.tsv").write_text("".join(lines), encoding="utf-8")
    sizes = ["--set", "train.steps=2", "--set", "train.validate_every=2"]
    said = ask("train", "walking", tmp_path / "my.tsv", "--out", tmp_path / "my", *sizes)
    assert said.code == 0, said.err
    assert "30 commands: 20 to train on, 5 to choose by, 5 to test with" in said.err
    assert "'fly', 'home'" in ask("walk", "fly home", "--model", tmp_path / "my").err


def test_a_line_that_is_no_command_is_named(toy: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.tsv").write_text("jump\tI_JUMP\njump up\tI_JUMP\n", encoding="utf-8")
    said = ask("evaluate", toy, tmp_path / "bad.tsv")
    assert said.code == 1
    assert "bad.tsv, command 2: 'jump up' is no command" in said.err
