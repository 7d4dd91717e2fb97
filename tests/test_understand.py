"""Encoders at work: pre-train on a toy language, fill gaps in it, then classify and tag with and without that start."""

import json
import random
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from saccade.arch.bert import BertConfig
from saccade.data.conllu import read_conllu
from saccade.folder import read_folder
from saccade.models.bert import Bert
from saccade.models.heads import TaggerModel
from saccade.pipelines.load import load
from saccade.tasks.encoder import EncoderRecipe
from saccade.tasks.recipes import task_named
from saccade.train.depth import freeze
from saccade.train.optim import AdamConfig, build_optimizer
from tiny import Said, ask

ANIMALS, COLOURS, ACTS = ("cat", "dog", "fox", "owl"), ("red", "blue", "old"), ("sleeps", "runs", "sings")
SENTENCES = [f"the {colour} {animal} {act}." for colour, animal, act in product(COLOURS, ANIMALS, ACTS)]
TAGS = {"the": "DET", ".": "PUNCT"} | dict.fromkeys(ANIMALS, "NOUN") | dict.fromkeys(COLOURS, "ADJ")
TAGS |= dict.fromkeys(ACTS, "VERB")
SMALL = ["model.layers=1", "model.width=32", "model.heads=2", "model.feedforward=64", "model.context=32"]
QUICK = [
    "train.steps=120",
    "train.adam.rate=5e-3",
    "train.warmup=5",
    "train.batch_tokens=512",
    "train.validate_every=30",
    "train.patience=0",
]


def settings(*more: str) -> list[str]:
    return [word for setting in (*QUICK, *more) for word in ("--set", setting)]


def conllu(sentences: list[str]) -> str:
    blocks = []
    for sentence in sentences:
        words = [*sentence.removesuffix(".").split(), "."]
        rows = [
            [str(n), word, "_", TAGS[word], "_", "_", "_", "_", "_", "SpaceAfter=No" if n == len(words) - 1 else "_"]
            for n, word in enumerate(words, 1)
        ]
        blocks.append(f"# text = {sentence}\n" + "".join("\t".join(row) + "\n" for row in rows) + "\n")
    return "".join(blocks)


def trained(said: Said) -> Said:
    assert said.code == 0, said.err
    return said


@pytest.fixture(autouse=True, scope="module")
def _no_pictures() -> Iterator[None]:
    """Drawing the curve after every validation takes longer than all the rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saccade.train.log.draw_curve", lambda entries, path: None)
        yield


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of the toy language, and an encoder that was pre-trained on it."""
    room = tmp_path_factory.mktemp("room")
    draw = random.Random(0)
    documents = ["\n".join(draw.choices(SENTENCES, k=draw.randint(1, 5))) for _ in range(200)]
    (room / "corpus.txt").write_text("\n\n".join(documents), encoding="utf-8")
    (room / "train.conllu").write_text(conllu(SENTENCES[::2]), encoding="utf-8")
    (room / "dev.conllu").write_text(conllu(SENTENCES[1::4]), encoding="utf-8")
    (room / "test.conllu").write_text(conllu(SENTENCES[3::4]), encoding="utf-8")
    rows = [f"{'it is quiet' if 'sleeps' in text else 'it moves'}\t{n}\t{text}" for n, text in enumerate(SENTENCES)]
    (room / "classes.tsv").write_text("kind of thing\tid\ttext\n" + "\n".join(rows) + "\n", encoding="utf-8")
    trained(
        ask(
            "train",
            "masked",
            room / "corpus.txt",
            "--out",
            room / "bert",
            *settings(*SMALL, "train.steps=250", "model.dropout=0.0"),
        )
    )
    return room


# Filling gaps


def test_gaps_are_filled_with_words_that_fit(room: Path) -> None:
    found = json.loads(ask("fill", "the old [MASK] sings.", "--model", room / "bert", "--format", "json").out)
    assert len(found["best"]) == 5
    assert {one["words"][0] for one in found["best"][:4]} == set(ANIMALS)
    assert found["text"] == f"the old {found['words'][0]} sings."
    chances = [one["probability"] for one in found["best"]]
    assert chances == sorted(chances, reverse=True)


def test_several_gaps_and_lines_keep_their_places(room: Path) -> None:
    lines = b"the red cat [MASK].\n\nthe [MASK] fox [MASK].\n"
    said = ask("fill", "--model", room / "bert", "--best", "1", stdin=lines)
    assert said.code == 0
    first, empty, third = said.lines
    assert empty == ""
    assert first in {f"the red cat {act}." for act in ACTS}
    assert third in {f"the {colour} fox {act}." for colour, act in product(COLOURS, ACTS)}


def test_a_text_without_a_gap_or_with_too_many_words_is_said(room: Path) -> None:
    said = ask(
        "fill", "the red cat runs.", "the [MASK] " + "cat " * 50, "</s> the red [MASK]", "--model", room / "bert"
    )
    assert said.code == 1
    one, other = said.err.splitlines()
    assert "write [MASK] where a word is missing" in one
    assert "at most 32 can be read" in other
    assert len(said.lines) == 2 + 5, "what looks like a mark is text, and is read"


def test_filling_in_a_batch_is_filling_alone(room: Path) -> None:
    filler = load(room / "bert")
    texts = ["the red cat [MASK].", "the [MASK] fox runs.", "[MASK]", "the blue owl sleeps. the blue owl [MASK]."]
    together, alone = filler(texts, best=3), [filler(text, best=3) for text in texts]
    assert [one.text for one in together] == [one.text for one in alone]
    for one, other in zip(together, alone, strict=True):
        assert one.score == pytest.approx(other.score, rel=1e-4)


def test_looking_hears_every_layer(room: Path, tmp_path: Path) -> None:
    filled = load(room / "bert")("the red [MASK] runs.")
    assert filled.looks.encoder.shape[0] == 1
    torch.testing.assert_close(torch.tensor(filled.looks.encoder).sum(-1), torch.ones(filled.looks.encoder.shape[:-1]))
    said = ask("fill", "the red [MASK] runs.", "--model", room / "bert", "--look", tmp_path / "look.png")
    assert said.code == 0
    assert (tmp_path / "look.png").read_bytes()[:4] == b"\x89PNG"


def test_an_interrupted_pre_training_ends_in_the_same_bytes(room: Path, tmp_path: Path) -> None:
    quick = settings(*SMALL, "train.steps=6", "train.validate_every=3")
    trained(ask("train", "masked", room / "corpus.txt", "--out", tmp_path / "whole", *quick))
    shutil.copytree(tmp_path / "whole", tmp_path / "part")
    last, *_ = sorted((tmp_path / "part" / "checkpoints").iterdir(), reverse=True)
    shutil.rmtree(last) if last.is_dir() else last.unlink()
    (tmp_path / "part" / "config.json").unlink()
    trained(ask("resume", tmp_path / "part"))
    whole, part = (read_folder(tmp_path / name).weights for name in ("whole", "part"))
    assert all(np.array_equal(weight, part[name]) for name, weight in whole.items())


XLNET = """
task = "masked"
name = "toy-xlnet"
[data]
train = [{{file = "{corpus}", documents = "separated", separator = ""}}]
held_out_share = 0.1
[tokens]
vocabulary = 2000
[model]
kind = "xlnet"
layers = 2
width = 32
heads = 2
feedforward = 64
context = 32
segments = false
dropout = 0.0
[train]
steps = 400
batch_tokens = 512
warmup = 5
smoothing = 0.0
validate_every = 200
select_by = "-loss"
adam = {{rate = 1e-2}}
muon = 0.95
"""


def test_xlnet_learns_fills_and_is_started_from(room: Path, tmp_path: Path) -> None:
    (tmp_path / "xlnet.toml").write_text(XLNET.format(corpus=room / "corpus.txt"), encoding="utf-8")
    said = trained(ask("train", tmp_path / "xlnet.toml", "--out", tmp_path / "xlnet"))
    right, often = (float(line.split("   ")[0].split()[-1]) for line in said.lines[1:3])
    assert right > 1.5 * often, said.out
    filled = load(tmp_path / "xlnet")("the old [MASK] sings.", best=4)
    assert {one.words[0] for one in filled.best} == set(ANIMALS)
    files = [room / f"{part}.conllu" for part in ("train", "dev", "test")]
    recipe, _ = task_named("tagging").recipe_for(files, room / "x")
    table = {name: value for name, value in recipe.table().items() if name not in ("model", "tokens")}
    read = task_named("tagging").recipe.read(table | {"init": str(tmp_path / "xlnet")}, where="test")
    (tmp_path / "out").mkdir()
    work = task_named("tagging").prepare(read, [], tmp_path / "out", resume=False).work
    before = read_folder(tmp_path / "xlnet").weights
    shared = {name: weight for name, weight in work.model.named_parameters() if name.startswith("encoder.")}
    assert all(np.array_equal(weight.detach().numpy(), before[name]) for name, weight in shared.items())


# Tagging


@pytest.fixture(scope="module")
def tagger(room: Path) -> Path:
    files = [room / f"{part}.conllu" for part in ("train", "dev", "test")]
    said = trained(
        ask("train", "tagging", *files, "--out", room / "tagger", *settings(*SMALL, 'model.positions={kind="rotary"}'))
    )
    assert float(said.out.split()[1]) > 95, said.out
    return room / "tagger"


def test_words_are_tagged_as_text_json_and_conllu(tagger: Path) -> None:
    text = "the blue dog runs."
    assert ask("tag", text, "--model", tagger).lines == ["the/DET blue/ADJ dog/NOUN runs/VERB ./PUNCT"]
    words = json.loads(ask("tag", text, "--model", tagger, "--format", "json").out)["words"]
    assert [word["tag"] for word in words] == ["DET", "ADJ", "NOUN", "VERB", "PUNCT"]
    rows = ask("tag", text, "--model", tagger, "--format", "conllu").lines
    assert f"# text = {text}" in rows
    assert [row.split("\t")[3] for row in rows if row[:1].isdigit()] == [word["tag"] for word in words]


def test_a_conllu_file_comes_out_the_same_but_for_its_tags(room: Path, tagger: Path, tmp_path: Path) -> None:
    blank = (room / "test.conllu").read_text().replace("\tNOUN\t", "\tX\t")
    (tmp_path / "in.conllu").write_text(blank)
    said = ask("tag", "--file", tmp_path / "in.conllu", "--model", tagger)
    assert said.out == (room / "test.conllu").read_text()


def test_a_sentence_longer_than_the_encoder_reads_is_tagged_part_by_part(tagger: Path) -> None:
    pipeline = load(tagger)
    words = ["red", "cat", "runs"] * 40
    spaces = [True] * len(words)
    size = pipeline.model.context - 2
    assert len(pipeline.vocabulary.encode([" " + " ".join(words)])[0]) == len(words), "a word is a piece"
    cuts = range(0, len(words), size)
    parts = pipeline.tag([words[cut : cut + size] for cut in cuts], [spaces[cut : cut + size] for cut in cuts])
    [whole] = pipeline.tag([words], [spaces])
    assert whole == [tag for part in parts for tag in part]
    assert len(whole) == len(words)


def test_tagging_with_fewer_examples_draws_them_by_the_seed(room: Path) -> None:
    task = task_named("tagging")
    recipe, _ = task.recipe_for([room / "train.conllu", room / "dev.conllu"], room / "x")
    chosen = [recipe.model_copy(update={"examples_limit": 3}).chosen(18) for _ in range(2)]  # type: ignore[attr-defined]
    assert chosen[0] == chosen[1]
    assert len(set(chosen[0])) == 3


# Classes, numbers, pairs


def test_classes_with_spaces_in_their_names_are_learnt(room: Path) -> None:
    out = room / "kinds"
    said = trained(ask("train", "classification", room / "classes.tsv", "--out", out, *settings(*SMALL)))
    assert "'it is quiet'" in said.err
    assert ask("classify", "the old owl sleeps.", "the old owl sings.", "--model", out).lines == [
        "it is quiet",
        "it moves",
    ]
    two = ask("classify", "the old owl sleeps.", "--model", out, "--best", "2").lines
    assert [line.split("\t")[1] for line in two] == ["it is quiet", "it moves"]
    assert sum(float(line.split("\t")[0]) for line in two) == pytest.approx(1, abs=1e-3)
    said = ask("evaluate", out, room / "classes.tsv")
    assert said.code == 0, said.err
    assert [line.split()[0] for line in said.lines] == ["accuracy", "macro", "F1", "Matthews", "calibration"]
    assert float(said.lines[0].split()[1]) > 90


def test_numbers_are_learnt(room: Path, tmp_path: Path) -> None:
    rows = [f"{text}\t{10 + 5 * ACTS.index(text.split()[-1][:-1])}.5" for text in SENTENCES]
    (tmp_path / "numbers.tsv").write_text("sentence\tscore\n" + "\n".join(rows) + "\n")
    more = settings(*SMALL, "data.labels=numbers", "train.select_by=-loss")
    said = trained(ask("train", "classification", tmp_path / "numbers.tsv", "--out", tmp_path / "n", *more))
    assert said.lines[0].startswith("Pearson")
    found = [
        float(line)
        for line in ask("classify", "the red cat sleeps.", "the red cat sings.", "--model", tmp_path / "n").lines
    ]
    assert found[0] == pytest.approx(10.5, abs=3)
    assert found[1] == pytest.approx(20.5, abs=3)


def test_pairs_are_told_apart_from_single_texts(room: Path, tmp_path: Path) -> None:
    rows = [f"{n % 2}\t{text}\t{SENTENCES[(n + 18) % 36] if n % 2 else text}" for n, text in enumerate(SENTENCES)]
    (tmp_path / "pairs.tsv").write_text("label\ttext1\ttext2\n" + "\n".join(rows) + "\n")
    said = trained(
        ask(
            "train",
            "classification",
            tmp_path / "pairs.tsv",
            "--out",
            tmp_path / "p",
            *settings(*SMALL, "train.steps=4"),
        )
    )
    assert "pairs of 2 classes" in said.err
    said = ask("classify", "a\tb", "a\tb\tc", "--model", tmp_path / "p")
    assert said.code == 1
    assert said.err == "saccade: line 2: 3 columns; a text, or two with a tab between; its output is empty\n"


# Starting from what was trained before


def fine_tuning(room: Path, **more: object) -> EncoderRecipe:
    task = task_named("tagging")
    files = [room / "train.conllu", room / "dev.conllu", room / "test.conllu"]
    recipe, _ = task.recipe_for(files, room / "x")
    table = {name: value for name, value in recipe.table().items() if name not in ("model", "tokens")}
    read = task.recipe.read(table | {"init": str(room / "bert")} | more, where="test")
    assert isinstance(read, EncoderRecipe)
    return read


def test_a_start_brings_its_vocabulary_sizes_and_weights(room: Path, tmp_path: Path) -> None:
    recipe = fine_tuning(room, dropout=0.3)
    prepared = task_named("tagging").prepare(recipe, [], tmp_path, resume=False)
    work, told = prepared.work, prepared.messages
    before = read_folder(room / "bert")
    shared = {name: weight for name, weight in work.model.named_parameters() if name.startswith("encoder.")}
    assert shared
    assert all(np.array_equal(weight.detach().numpy(), before.weights[name]) for name, weight in shared.items())
    assert (tmp_path / "tokenizer.json").read_text() == before.tokenizer
    assert str(room / "bert") in told[-1]
    assert {module.p for module in work.model.modules() if type(module).__name__ == "Dropout"} == {0.3}


def test_a_start_that_cannot_be_is_one_clear_line(room: Path, tagger: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    text = f'task = "tagging"\nname = "x"\ninit = "{room / "bert"}"\n[data]\ntrain = ["a"]\nvalid = ["b"]\n'
    recipe.write_text(text + "[model]\nlayers = 3\n[train]\nsteps = 3\n")
    said = ask("train", recipe, "--out", tmp_path / "out")
    assert said.code != 0
    assert "brings its own model" in said.err
    assert "{" not in said.err
    assert len(said.err.splitlines()) == 1
    said = ask("train", "en-es", "--set", "init=bert", "--out", tmp_path / "out")
    assert "init" in said.err
    said = ask("tag", "x", "--model", room / "bert")
    assert said.code == 2
    assert "saccade fill" in said.err
    assert not (tmp_path / "out").exists()


def tiny_tagger() -> TaggerModel:
    config = BertConfig(layers=2, width=8, heads=2, feedforward=16, context=8)
    return TaggerModel(Bert(config, 20), 3, 0.0)


def test_frozen_layers_stay_and_the_rest_moves() -> None:
    model = tiny_tagger()
    freeze(model, 2)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    optimizer = build_optimizer(model, AdamConfig(rate=0.1, decay=0.1), 0.9)
    for weight in model.parameters():
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    moved = {name for name, weight in model.named_parameters() if not torch.equal(weight.detach(), before[name])}
    assert moved == {name for name in before if not name.startswith(("encoder.embed", "encoder.blocks.0"))}


def test_deeper_layers_move_by_smaller_shares_of_the_rate() -> None:
    model = tiny_tagger()
    optimizer = build_optimizer(model, AdamConfig(), layer_decay=0.5)
    share = {weight: group["share"] for group in optimizer.param_groups for weight in group["params"]}
    assert len(share) == len(list(model.parameters()))
    expected = {"encoder.embed": 0.125, "encoder.blocks.0": 0.25, "encoder.blocks.1": 0.5, "head": 1.0}
    for name, weight in model.named_parameters():
        assert share[weight] == next(value for start, value in expected.items() if name.startswith(start))


def test_transfer_is_a_table_a_picture_and_goes_on_where_it_stopped(room: Path, tmp_path: Path) -> None:
    task = task_named("tagging")
    files = [room / "train.conllu", room / "dev.conllu", room / "test.conllu"]
    from saccade.config import to_toml

    recipe, _ = task.recipe_for(files, room / "toy")
    (tmp_path / "toy.toml").write_text(to_toml(recipe.table()), encoding="utf-8")
    asked = ["transfer", tmp_path / "toy.toml", "--init", room / "bert", "--examples", "4", "--examples", "all"]
    more = ["--seeds", "2", "-o", tmp_path / "out", *settings(*SMALL, "train.steps=8")]
    said = ask(*asked, *more)
    assert said.code == 0, said.err
    assert said.err.count("accuracy") == 8
    report = (tmp_path / "out" / "transfer.md").read_text()
    assert "| from scratch |" in report
    assert (tmp_path / "out" / "transfer.png").read_bytes()[:4] == b"\x89PNG"
    stored = json.loads((tmp_path / "out" / "transfer.json").read_text())
    stored["found"] = dict.fromkeys(stored["found"], 12.34)
    (tmp_path / "out" / "transfer.json").write_text(json.dumps(stored))
    assert "12.34 ± 0.00" in Path(ask(*asked, *more).out.strip()).read_text(), "what is done is not done again"


def test_what_was_read_is_what_is_tagged(room: Path) -> None:
    sentences = read_conllu(room / "test.conllu")
    assert [sentence.text for sentence in sentences] == SENTENCES[3::4]
    assert isinstance(tiny_tagger().head, nn.Linear)
