"""The test part in a model folder: its scores are those of the training, and it is trusted as little as the rest."""

import hashlib
import json
import lzma
import re
from pathlib import Path

import pytest
from torch import nn

import saccade.carried
from saccade.carried import CarriedTest, carried_test
from saccade.config import read_toml
from saccade.errors import UserError
from saccade.files import read_file
from saccade.folder import digest_of, read_config
from saccade.pipelines.load import bundled_models, model_path
from saccade.tasks.recipes import RECIPES
from saccade.weights import write_folder
from tiny import ask
from toy_trainings import DIGITS

STACK = "layers = 1\nwidth = 16\nheads = 2\nfeedforward = 32\n"
SEQUENCE = f"[model.encoder]\n{STACK}[model.decoder]\n{STACK}"
STREAM = f"[tokens]\nkind = 'bytes'\n[model]\n{STACK}context = 32\n"
PARTS = "train = ['train']\nvalid = ['test']\ntest = ['test']\n"
TREEBANK = "".join(
    f"# text = {one} 's\n1-2\t{one}'s\t_\t_\t_\t_\t_\t_\t_\t_\n1\t{one}\t_\tNUM\t_\t_\t0\t_\t_\t_\n"
    "2\t's\t_\tPART\t_\t_\t1\t_\t_\t_\n\n"
    for one in DIGITS
)
STORIES = "\n<|endoftext|>\n".join(f"{one} and {two}\n\n{two}" for one in DIGITS for two in DIGITS)
TOYS: dict[str, tuple[str, str]] = {
    "translation": (
        f"[tokens]\nvocabulary = 300\n{SEQUENCE}[data]\n{PARTS}",
        "".join(f"{d}\t{d} {d}\n" for d in DIGITS),
    ),
    "pronunciation": (f"{SEQUENCE}[data]\n{PARTS}", "cat\tK AE T\nact\tAE K T\nact\tAE K T T\n"),
    "tagging": (f"[tokens]\nvocabulary = 300\n[model]\n{STACK}[data]\n{PARTS}", TREEBANK),
    "one text": ("held_out_share = 0.2\ntrain = [{file = 'train'}]\n", "one two three\n\nfour five\n" * 40),
    "documents": (
        "train = [{file = 'train', documents = 'separated'}]\nvalid = [{file = 'test', documents = 'separated'}]\n",
        STORIES,
    ),
}


def trained(toy: str, room: Path) -> tuple[Path, str]:
    """The folder of a model by a recipe that carries its test part, and its scores; its data is gone."""
    rest, content = TOYS[toy]
    task = toy if toy in ("translation", "pronunciation", "tagging") else "language"
    rest = rest if task != "language" else f"{STREAM}[data]\nkind = 'files'\n{rest}"
    train = "[train]\nsteps = 2\nbatch_tokens = 128\nwarmup = 1\nvalidate_every = 2\nselect_by = '-loss'\n"
    train = train.replace("'-loss'", "'accuracy'") if task == "tagging" else train
    (room / "toy.toml").write_text(f"task = '{task}'\nname = 'toy'\n[card]\ncarry_test = true\n{rest}{train}")
    data = room / "data"
    data.mkdir()
    # A dictionary is not trained on the words it is tested with.
    more = "".join(f"{word}\tT AE K\n" for word in ("tack", "tac", "tak", "take")) if task == "pronunciation" else ""
    (data / "train").write_text(content + more, encoding="utf-8")
    (data / "test").write_text(content, encoding="utf-8")
    said = ask("train", room / "toy.toml", "--data", data, "--out", room / "model", "--quiet")
    assert said.code == 0, said
    for file in data.iterdir():
        file.unlink()
    return room / "model", said.out


@pytest.mark.parametrize("toy", TOYS)
def test_the_carried_part_gives_the_scores_of_the_training(
    toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saccade.train.log.draw_curve", lambda entries, path: None)
    monkeypatch.delenv("SACCADE_DATA", raising=False)
    out, scores = trained(toy, tmp_path)
    said = ask("evaluate", out)
    assert (said.code, said.out) == (0, scores)
    assert "scored on the test part in its folder" in said.err


def test_own_files_are_never_carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.train.log.draw_curve", lambda entries, path: None)
    file = tmp_path / "own.txt"
    file.write_text("one two three four\n" * 200)
    small = [word for key in ("train.steps=2", "model.layers=1") for word in ("--set", key)]
    assert ask("train", "language", file, "--out", tmp_path / "own", "--quiet", *small).code == 0
    assert carried_test(tmp_path / "own", read_config(tmp_path / "own").sha256) is None


def test_a_recipe_that_cannot_carry_its_test_says_so_before_it_trains(tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text("".join(f"{one} {n}\t{one}\n" for one in DIGITS for n in range(9)))
    said = ask(
        "train", "classification", tmp_path / "rows.tsv", "--out", tmp_path / "out", "--set", "card.carry_test=true"
    )
    assert (said.code, said.out) == (2, "")
    assert "card.carry_test" in said.err


def with_test(path: Path, content: bytes | None = None) -> dict[str, str]:
    """The digests of a folder with a test part; `content` replaces it, with a digest that fits."""
    part = CarriedTest("test.tsv.xz", "a\tb\n")
    write_folder(path, {"task": "none", "model": {}}, nn.Linear(2, 2), "{}", storage="float32", carried=part)
    if content is not None:
        (path / part.name).write_bytes(content)
        config = json.loads((path / "config.json").read_text())
        config["sha256"][part.name] = hashlib.sha256(content).hexdigest()
        config["sha256"]["config.json"] = digest_of(config)
        (path / "config.json").write_text(json.dumps(config))
    return read_config(path).sha256


def test_what_was_stored_comes_back(tmp_path: Path) -> None:
    found = carried_test(tmp_path, with_test(tmp_path))
    assert found is not None
    assert lzma.decompress(read_file(found, 1000)) == b"a\tb\n"


@pytest.mark.parametrize(
    "content",
    [b"", b"no xz", lzma.compress(b"\xff\xfe"), lzma.compress(b"a\tb")[:-8], lzma.compress(b"x" * 5000)],
    ids=["empty", "no xz", "no UTF-8", "cut off", "too large"],
)
def test_a_damaged_part_is_refused_in_one_line(tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saccade.carried, "LARGEST_TEST", 1000)
    with pytest.raises(UserError, match=r"test\.tsv\.xz") as caught:
        carried_test(tmp_path, with_test(tmp_path, content))
    assert len(str(caught.value).splitlines()) == 1


def test_a_part_with_another_digest_is_refused(tmp_path: Path) -> None:
    digests = with_test(tmp_path)
    (tmp_path / "test.tsv.xz").write_bytes(lzma.compress(b"a\tc\n"))
    with pytest.raises(UserError, match="damaged"):
        carried_test(tmp_path, digests)


@pytest.mark.parametrize("path", bundled_models(), ids=lambda path: path.name)
def test_bundled_models_carry_what_their_recipes_say(path: Path) -> None:
    said = read_toml(RECIPES / f"{path.name}.toml")["card"].get("carry_test", False)
    assert (carried_test(path, read_config(path).sha256) is not None) == said


def test_a_bundled_card_can_be_checked_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SACCADE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    card = (model_path("en-es-rnn") / "README.md").read_text(encoding="utf-8")
    found = ask("evaluate", "en-es-rnn").lines
    for line, stated in zip(found, re.findall(r"- test: (.*)", card), strict=True):
        score, said = (float(re.search(r" ([\d.]+) ±", one)[1]) for one in (line, stated))  # type: ignore[index]
        # Without a compiler a model runs in floats, and a few words differ.
        assert score == pytest.approx(said, abs=0.15)
