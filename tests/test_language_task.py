"""From a text to a language model: what is held out, trained, stored, scored and resumed."""

import json
import math
import shutil
from pathlib import Path

import pytest
import torch

import saccade
from saccade.data.stream import Stream, encode_documents
from saccade.errors import UserError
from saccade.evaluate.language import surprise
from saccade.folder import ModelConfig, ModelFolder
from saccade.models.answering import language_runtime
from saccade.pipelines.completer import Completer
from saccade.pipelines.pipeline import Request
from saccade.tasks.language import LanguageRecipe, LanguageTask
from saccade.tasks.texts import FilesConfig, split_texts
from saccade.tensors import StoredTensor, StoredTensors
from saccade.tokens.marks import SPECIALS, Marks
from tiny import SENTENCES, Said, answered, ask, insist_one_line, tiny_gpt, tiny_vocabulary

BEGIN = Marks().begin


@pytest.fixture(scope="module")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "my.txt"
    lines = [f"{a} {b} {SENTENCES[(a + b) % 4]}, für {a * b} €.\n" for a in range(12) for b in range(12)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


TINY = ["layers=1", "width=16", "heads=2", "feedforward=32", "context=32"]
QUICK = ["steps=6", "validate_every=2", "batch_tokens=256", "warmup=2"]
SETTINGS = [
    word
    for setting in (*(f"model.{key}" for key in TINY), *(f"train.{key}" for key in QUICK))
    for word in ("--set", setting)
]


@pytest.fixture(scope="module")
def own(text_file: Path) -> tuple[Path, Said]:
    """A model trained on a file of somebody's own, as small as can be; and what the command said."""
    out = text_file.parent / "my-model"
    return out, ask("train", "language", text_file, "--out", out, *SETTINGS)


def test_a_text_becomes_a_model(own: tuple[Path, Said], text_file: Path) -> None:
    out, said = own
    assert said.code == 0, said.err
    assert [line.rpartition("   ")[0].rpartition(" ")[0] for line in said.lines] == [
        "loss",
        "perplexity",
        "bits per byte",
    ]
    characters = len(text_file.read_text("utf-8"))
    assert f"{characters:,} characters; the last tenth is held out" in said.err
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md"} <= {path.name for path in out.iterdir()}


def test_its_scores_are_their_definitions(own: tuple[Path, Said], text_file: Path) -> None:
    _, said = own
    loss, perplexity, bits = (float(line.rpartition("   ")[0].rpartition(" ")[2]) for line in said.lines)
    text = text_file.read_text("utf-8")
    held = len(text[int(0.9 * len(text)) :].encode())
    assert perplexity == pytest.approx(math.exp(loss), abs=0.1)
    # A byte a token, and the first is not predicted.
    assert bits == pytest.approx(loss / math.log(2) * (held - 1) / held, abs=1e-3)
    assert f"tokens:{held - 1}|bytes:{held}|context:32|stride:32" in said.lines[0]
    assert loss < math.log(259), "it has learnt something"


def test_the_trained_model_goes_on_and_shows_itself(own: tuple[Path, Said]) -> None:
    out, _ = own
    found = answered(ask("complete", "one", "--model", out, "--max-tokens", "20", "--seed", "1"))
    assert found.startswith("one")
    assert found == answered(ask("complete", "one", "--model", out, "--max-tokens", "20", "--seed", "1"))
    assert answered(ask("score", "one two", "--model", out)).splitlines()[0] == "one two"
    assert answered(ask("show", out)).splitlines()[0] == "# my-model"


def test_evaluating_gives_what_training_gave(own: tuple[Path, Said], text_file: Path, tmp_path: Path) -> None:
    out, trained = own
    assert ask("evaluate", out).out == trained.out
    text = text_file.read_text("utf-8")
    (tmp_path / "held.txt").write_text(text[int(0.9 * len(text)) :], encoding="utf-8")
    assert answered(ask("evaluate", out, tmp_path / "held.txt")) == trained.out
    rows = [json.loads(line) for line in ask("evaluate", out, "--format", "json").lines]
    assert [row["name"] for row in rows] == ["loss", "perplexity", "bits per byte"]


def test_a_finished_training_can_be_resumed_without_change(own: tuple[Path, Said]) -> None:
    out, trained = own
    before = (out / "model.safetensors").read_bytes()
    said = ask("resume", out, "--quiet")
    assert said.code == 0, said
    assert said.out == trained.out
    assert (out / "model.safetensors").read_bytes() == before


def test_a_training_cut_short_ends_as_one_that_was_not(own: tuple[Path, Said], text_file: Path) -> None:
    """The last checkpoint and the model are taken away, as if the power had failed just before."""
    out, trained = own
    again = text_file.parent / "again" / "my-model"
    said = ask("train", "language", text_file, "--out", again, *SETTINGS, "--quiet")
    assert (again / "model.safetensors").read_bytes() == (out / "model.safetensors").read_bytes(), (
        "same seed, same model"
    )
    steps = sorted((again / "checkpoints").iterdir())
    assert len(steps) > 1
    shutil.rmtree(steps[-1])
    for name in ("config.json", "model.safetensors"):
        (again / name).unlink()
    said = ask("resume", again, "--quiet")
    assert said.code == 0, said
    assert said.out == trained.out
    assert (again / "model.safetensors").read_bytes() == (out / "model.safetensors").read_bytes()


@pytest.mark.parametrize("isolate", [True, False])
def test_documents_are_scored_as_they_were_trained(tmp_path: Path, isolate: bool) -> None:
    """Each alone, or each with a look at what happened to stand before it."""
    (tmp_path / "lines.txt").write_text("".join(f"{line}\n" for line in SENTENCES * 3 + ["the end", "one"]))
    data = {
        "kind": "files",
        "train": [{"file": "lines.txt", "documents": "lines"}],
        "held_out_share": 0.5,
        "isolate_documents": isolate,
    }
    vocabulary = tiny_vocabulary("bytes")
    model = tiny_gpt("rotary", vocabulary=len(vocabulary))
    completer = Completer(language_runtime(model), vocabulary, marked=True)
    stored = {name: StoredTensor(weight.detach().numpy()) for name, weight in model.named_parameters()}
    config = ModelConfig(2, "language", "", "float32", {}, {}, {"data": data})
    folder = ModelFolder(tmp_path, config, "", StoredTensors(stored))
    loss, _, bits = LanguageTask().evaluate(completer, folder, [], [tmp_path], Request())
    held = [*SENTENCES, "the end", "one"][3:]
    tokens = encode_documents(vocabulary, held, marked=True)
    expected = surprise(model, Stream(tokens, vocabulary.marks, isolate))
    assert loss.value == expected.loss
    assert bits.value == pytest.approx(expected.nats / math.log(2) / sum(len(text) for text in held))
    assert expected.nats != surprise(model, Stream(tokens, vocabulary.marks, not isolate)).nats


@pytest.mark.parametrize("documents", ["whole", "lines"])
def test_only_a_single_text_has_no_marks(text_file: Path, tmp_path: Path, documents: str) -> None:
    recipe = LanguageRecipe.read(
        {
            "name": "toy",
            "data": {
                "kind": "files",
                "train": [{"file": str(text_file), "documents": documents}],
                "held_out_share": 0.1,
            },
            "tokens": {"kind": "bytes"},
            "model": {"layers": 1, "width": 16, "heads": 2, "feedforward": 32, "context": 32},
            "train": {"steps": 2, "batch_tokens": 128},
        },
        where="test",
    )
    prepared = LanguageTask().prepare(recipe, [], tmp_path, resume=False)
    work, told = prepared.work, prepared.messages
    again = LanguageTask().prepare(recipe, [], tmp_path, resume=True).work
    marked = documents == "lines"
    batches = [work.batch(next(work.sampler)) for _ in range(5)]
    for batch in batches:
        assert batch.tokens_BT.shape == (4, 32)
        assert bool((batch.tokens_BT == BEGIN).any()) == marked == (batch.documents_BT is not None)
        assert torch.equal(again.batch(next(again.sampler)).tokens_BT, batch.tokens_BT), "kept as it was prepared"
    text = text_file.read_text("utf-8")
    training = text[: int(0.9 * len(text))] if not marked else "".join(text.splitlines()[: int(0.9 * 144)])
    marks = int(0.9 * 144) if marked else -1
    assert f"{len(training.encode()) + marks:,} training tokens" in told[0]


def split(folder: Path, texts: list[str], share: float, documents: str = "whole") -> tuple[list[str], list[str]]:
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_text(text)
    files = [{"file": f"{number}.txt", "documents": documents} for number in range(len(texts))]
    return split_texts(FilesConfig.model_validate({"train": files, "held_out_share": share}), [folder], lowercase=False)


def test_the_end_of_the_text_is_held_out(tmp_path: Path) -> None:
    lines = [f"{number:04}" for number in range(100)]
    text = "".join(f"{line}\n" for line in lines)
    assert split(tmp_path, [text], 0.1) == ([text[:450]], [text[450:]])
    assert split(tmp_path, [text], 0.1, "lines") == (lines[:90], lines[90:])
    # A tenth of two texts is the end of the second, not all of it; what is short goes whole.
    other, short = text.replace("0", "x"), "end\n"
    assert split(tmp_path, [text, other], 0.1) == ([text, other[:400]], [other[400:]])
    assert split(tmp_path, [text, other, short], 0.1) == ([text, other[:403]], [other[403:], short])


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_nothing_is_both_trained_on_and_held_out(tmp_path: Path, share: float) -> None:
    texts = [chr(ord("a") + number) * (5 + 3 * number) + "\n" for number in range(9)]
    training, held = split(tmp_path, texts, share)
    assert "".join(training + held) == "".join(texts)
    assert all(training)
    assert all(held)
    if share == 0.5:
        assert (training, held) == (texts[:4], texts[4:]), "enough of them: none is cut"
    else:
        assert sum(map(len, held)) == pytest.approx(share * sum(map(len, texts)), abs=1)


def test_a_text_too_short_to_hold_some_of_it_out_is_refused(tmp_path: Path) -> None:
    for share in (0.1, 0.9):
        with pytest.raises(UserError, match="too short to hold"):
            split(tmp_path, ["a"], share)


@pytest.mark.parametrize(
    ("contents", "fragments"),
    [([""], ["0.txt", "no text"]), ([" \n"], ["0.txt", "no text"]), (["one", "one"], ["1.txt", "already there"])],
    ids=str,
)
def test_texts_that_hold_nothing_are_refused(tmp_path: Path, contents: list[str], fragments: list[str]) -> None:
    files = [tmp_path / f"{number}.txt" for number in range(len(contents))]
    for file, content in zip(files, contents, strict=True):
        file.write_text(content)
    insist_one_line(ask("train", "language", *files, "--out", tmp_path / "out"), 1, fragments)
    assert not (tmp_path / "out").exists()


def test_a_text_that_is_not_there_is_named(tmp_path: Path) -> None:
    insist_one_line(
        ask("train", "language", tmp_path / "no.txt", "--out", tmp_path / "out"), 1, ["no.txt: no such file"]
    )


def test_a_model_without_capitals_reads_none(text_file: Path, tmp_path: Path) -> None:
    """Trained on a text in capitals, it still knows small letters only."""
    (tmp_path / "loud.txt").write_text(text_file.read_text("utf-8").upper(), encoding="utf-8")
    out = tmp_path / "quiet"
    settings = [*SETTINGS, "--set", "lowercase=true", "--set", "tokens.kind=characters"]
    assert ask("train", "language", tmp_path / "loud.txt", "--out", out, *settings, "--quiet").code == 0
    completer = saccade.load(out)
    assert not any(letter.isupper() for letter in completer.vocabulary.characters - set(SPECIALS))
    assert completer.begin("ONE Dog") == completer.begin("one dog")
    assert completer("ONE", max_tokens=5).ids == completer("one", max_tokens=5).ids
    assert answered(ask("evaluate", out, tmp_path / "loud.txt")) == answered(ask("evaluate", out, text_file))
