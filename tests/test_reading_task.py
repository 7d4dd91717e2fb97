"""From drawn words to a reader: fonts, texts, drawings, distortions; pages cut into words; a second loss; one training
that is asked everything."""

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFont
from safetensors.numpy import load_file

import saccade
from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.weights import stored
from saccade.config import changed, read_toml
from saccade.data.batches import sequence_batch
from saccade.data.ragged import Ragged
from saccade.data.word_distortion import blurred, coarse, distorted, inverted, moved, noisy
from saccade.data.word_drawing import HEIGHT, WIDTH, WordDrawer
from saccade.data.word_fonts import Font, by_family, find_fonts, split_families
from saccade.data.word_sets import (
    DrawnWords,
    LabelledWords,
    Photographed,
    draw_all,
    draw_test,
    read_word_list,
    read_word_table,
)
from saccade.data.word_texts import ALPHABET, LONGEST, WordTexts
from saccade.errors import MissingData, UserError
from saccade.evaluate.calibration import calibration_error
from saccade.evaluate.reading import plain, pointing, words_right
from saccade.models.answering import arrays_of
from saccade.models.encdec import build_encoder_decoder
from saccade.pipelines.page import WordBox, cut_words, find_ink
from saccade.pipelines.word_reader import ReadWord
from saccade.runtime.open import SequenceRuntime
from saccade.tasks.pointing import pointing_scores
from saccade.tasks.reading import ReadingRecipe
from saccade.tokens.marks import Marks
from saccade.train.objective import SequenceObjective
from tiny import ask, insist_one_line

FONT = str(Path(saccade.__file__).parent / "look" / "fonts" / "DejaVuSans.ttf")
TEXTS = WordTexts(["ten", "two", "six", "one"])
DRAWER = WordDrawer(TEXTS, [Font(FONT, "DejaVu Sans")], 1)


# Drawing


def test_fonts_are_known_by_their_families(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.data.word_fonts.FOLDERS", ())
    monkeypatch.delenv("SACCADE_FONTS", raising=False)
    (tmp_path / "odd.ttf").write_bytes(b"no font")
    with pytest.raises(MissingData, match="no fonts"):
        find_fonts([str(tmp_path)])
    fonts = find_fonts([str(Path(FONT).parent)])
    assert [font.family for font in fonts] == ["DejaVu Sans"]
    assert split_families(fonts, ["dejavu sans"]) == ([], fonts)
    assert by_family([*fonts, Font("b", "B"), *fonts]) == [fonts * 2, [Font("b", "B")]]


def test_a_recipe_says_which_fonts_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.data.word_fonts.FOLDERS", (str(Path(FONT).parent),))
    (tmp_path / "words.txt").write_text("ten\ntwo\n", "utf-8")
    wanted = DrawnWords(words="words.txt", least_families=3, packages=["fonts-lato"])
    with pytest.raises(MissingData, match=r"1 font families .* at least 3 .*: apt-get install fonts-lato$"):
        draw_test(wanted, [tmp_path], 1)
    held = wanted.model_copy(update={"least_families": 1, "held_out_families": ["Lato"]})
    with pytest.raises(MissingData, match=r"held-out families Lato .*fonts-lato$"):
        draw_test(held, [tmp_path], 1)


def test_a_font_of_capitals_writes_capitals() -> None:
    drawer = WordDrawer(TEXTS, [replace(DRAWER.fonts[0], capitals=True)], 1)
    assert all(text == text.upper() for _, text in map(drawer, range(20)))


def test_texts_are_of_all_kinds_and_can_all_be_written() -> None:
    random = np.random.default_rng(0)
    texts = [TEXTS(random) for _ in range(400)]
    assert all(1 <= len(text) <= LONGEST and set(text) <= set(ALPHABET) for text in texts)
    for wanted in (str.isupper, str.islower, str.istitle, str.isdigit, lambda text: not text.isalnum()):
        assert any(wanted(text) for text in texts)


def test_a_drawing_depends_on_its_number_alone() -> None:
    pixels, text = DRAWER(7)
    assert pixels.shape == (HEIGHT, WIDTH)
    assert pixels.dtype == np.uint8
    again, same = DRAWER(7)
    assert (same, again.tobytes()) == (text, pixels.tobytes())
    words = draw_all(DRAWER, 12, lambda *_: None)
    assert np.array_equal(words.pixels_NHW[7], pixels)
    assert words.texts[7] == text
    clean, _ = WordDrawer(TEXTS, DRAWER.fonts, 1, clean=True)(3)
    assert clean.max() == 255
    assert clean.min() < 40


def test_distortions_are_each_pictures_own() -> None:
    values = np.random.default_rng(0).random((8, HEIGHT, WIDTH, 1)).astype(np.float32)
    random = np.random.default_rng(0)
    assert np.array_equal(blurred(values, random, 0.0), values)
    assert np.array_equal(coarse(values, random, 0.0), values)
    np.testing.assert_allclose(inverted(values, random, 1.0), 1 - values)
    np.testing.assert_allclose(noisy(values, random, 1.0, 0.0), values)
    pixels = (values[..., 0] * 255).astype(np.uint8)
    assert np.array_equal(moved(pixels, random, 0.0), pixels)
    first = distorted(pixels, np.random.default_rng(1))
    assert first.dtype == np.float32
    assert first.min() >= 0
    assert first.max() <= 1
    assert np.array_equal(first, distorted(pixels, np.random.default_rng(1)))


def test_word_lists_and_tables(tmp_path: Path) -> None:
    (tmp_path / "words.tsv").write_text("rare\t70\nthe\t10\nnaïve\t10\ncat\t20\n", "utf-8")
    assert read_word_list(tmp_path / "words.tsv", 2) == ["the", "cat"]
    for number in range(12):
        Image.new("L", (40, 16), 255).save(tmp_path / f"{number}.png")
    rows = [f"{number}.png\tw{number}" for number in range(12)]
    (tmp_path / "labels.tsv").write_text("\n".join(["file\ttext", *rows, "none.png\tx", "0.png\t"]) + "\n", "utf-8")
    parts = read_word_table(LabelledWords(file="labels.tsv"), tmp_path / "labels.tsv", 1)
    assert (len(parts.train.texts), len(parts.valid.texts), len(parts.test.texts)) == (10, 1, 1)
    assert len(parts.told) == 2
    assert "none.png" in parts.told[0]
    (tmp_path / "few.tsv").write_text(rows[0], "utf-8")
    with pytest.raises(UserError, match="at least 10"):
        read_word_table(LabelledWords(file="few.tsv"), tmp_path / "few.tsv", 1)


# Pages


def page(lines: list[str], *, size: int = 20, dark: bool = True) -> np.ndarray:
    font = ImageFont.truetype(FONT, size)
    image = Image.new("L", (30 * size, 2 * size * len(lines) + size), 255 if dark else 20)
    for number, line in enumerate(lines):
        ImageDraw.Draw(image).text((size, size + 2 * size * number), line, fill=0 if dark else 240, font=font)
    return np.asarray(image)


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("size", [14, 20, 40])
def test_pages_are_cut_into_lines_and_words_in_reading_order(size: int, dark: bool) -> None:
    lines = ["the quick brown fox", "jumps over it!", "and is gone"]
    pixels = page(lines, size=size, dark=dark)
    found = cut_words(pixels)
    assert [len(line) for line in found] == [len(line.split()) for line in lines]
    for line, below in pairwise(found):
        assert all(one.right <= other.left + size for one, other in pairwise(line))
        assert line[0].top < below[0].top
    ink, clear = find_ink(pixels)
    assert clear > 0.75
    assert ink.mean() < 0.2


def test_what_is_no_page_is_one_word() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (40, 100), dtype=np.uint8)
    assert cut_words(noise) == cut_words(noise, "word")
    assert len(cut_words(noise, "word")[0]) == 1
    assert cut_words(page(["word"])[:, :200])[0][0].right == 200, "a word keeps its margins"
    assert cut_words(np.full((50, 80), 255, np.uint8), "page") == []


# The second loss


def reader_config(**more: Any) -> EncoderDecoderConfig:
    stack = {"layers": 1, "width": 16, "heads": 2, "feedforward": 16, "dropout": 0.0}
    front = {
        "kind": "convolutions",
        "height": 8,
        "width": 24,
        "channels": 1,
        "stages": [{"width": 8, "stride": [4, 2]}],
    }
    return EncoderDecoderConfig.read({"encoder": stack | {"front": front}, "decoder": stack} | more, where="test")


def test_columns_tell_the_text_by_themselves() -> None:
    config = reader_config(ctc=True, tie="decoder")
    model = build_encoder_decoder(config, 12)
    shapes = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    assert stored(config.weights(12)) == shapes
    marks, letters = Marks(), Ragged.of([[3, 4], [5, 5, 6]])
    pictures = torch.rand(2, 8, 24, 1)
    batch = sequence_batch(pictures, None, letters, np.array([0, 1]), marks)
    losses = SequenceObjective(0.0, 0.4, marks.pad)(model, batch)
    alone = SequenceObjective()(model, batch)["loss"][0]
    memory: Any = model.read(pictures)
    logits, columns = model.columns(memory)
    assert tuple(logits.shape) == (2, 12, 12)
    assert columns.tolist() == [12, 12]
    expected = torch.nn.functional.ctc_loss(
        logits.log_softmax(-1).transpose(0, 1), torch.tensor([3, 4, 5, 5, 6]), columns, torch.tensor([2, 3]),
        reduction="sum",
    )  # fmt: skip
    torch.testing.assert_close(losses["ctc"][0], expected)
    torch.testing.assert_close(losses["loss"][0], 0.6 * alone + 0.4 * expected)
    losses["loss"][0].backward()
    assert model.ctc is not None
    assert model.ctc.weight.grad is not None
    runtime = SequenceRuntime(config, arrays_of(model), "exact")
    found, expected = runtime.read(pictures.numpy()), model.eval().read(pictures)
    np.testing.assert_allclose(found.states_MSD, expected.states_MSD.detach(), atol=1e-5)  # type: ignore[union-attr]


def test_padded_columns_do_not_count() -> None:
    model = build_encoder_decoder(reader_config(ctc=True, tie="decoder"), 12).eval()
    whole, mask = torch.rand(1, 8, 24, 1), torch.zeros(1, 8, 24, dtype=torch.bool)
    mask[:, :6, :10] = True
    padded, counted = model.columns(model.read(whole, mask))  # type: ignore[arg-type]
    alone, _ = model.columns(model.read(whole[:, :6, :10]))  # type: ignore[arg-type]
    assert counted.tolist() == [5]
    torch.testing.assert_close(padded[:, :5], alone, atol=1e-4, rtol=1e-4)


def test_ctc_reads_one_memory() -> None:
    stack = {"layers": 1, "width": 8, "heads": 2, "feedforward": 8}
    with pytest.raises(ValueError, match="reads one memory"):
        EncoderDecoderConfig(encoders={"a": stack, "b": stack}, decoder=stack, ctc=True)  # type: ignore[arg-type, dict-item]


# Scores


def test_scores_of_words() -> None:
    assert plain("It's 5!") == "its5"
    assert words_right(["A", "b"], ["a", "b"], "x", exact=False).value == 100
    assert words_right(["A", "b"], ["a", "b"], "x", exact=True).value == 50
    assert calibration_error([0.95, 0.95], [True, True]).value == pytest.approx(5)
    hit, chance = pointing([True, False], [0.1, 0.3])
    assert (hit.value, chance.value) == (50, pytest.approx(20))


# A training


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reading")


@pytest.fixture(scope="module")
def model(room: Path) -> Path:
    rows = []
    for number in range(90):
        pixels, text = WordDrawer(WordTexts(["a", "o"]), DRAWER.fonts, 3, clean=True)(number)
        text = text[:3]
        Image.fromarray(pixels).save(room / f"{number}.png")
        rows.append(f"{number}.png\t{text}\n")
    (room / "labels.tsv").write_text("".join(rows), "utf-8")
    changes = {"train.steps": 6, "train.validate_every": 3, "train.batch_tokens": 64, "train.warmup": 2}
    changes |= {"model.encoder.width": 16, "model.decoder.width": 16, "train.average": 1}
    changes |= {"model.encoder.front.stages": [{"width": 8, "stride": [4, 4]}]}
    sets = [f"--set={key}={json.dumps(value).replace(': ', ' = ')}" for key, value in changes.items()]
    said = ask("train", "reading", room / "labels.tsv", "--out", room / "model", *sets)
    assert said.code == 0, said
    assert "72 training words, 9 to choose by, 9 to test" in said.err
    assert "words right, held out" in said.out
    return room / "model"


def test_a_reader_answers_in_every_form(model: Path, room: Path, tmp_path: Path) -> None:
    record = json.loads(ask("read", room / "0.png", "--model", model, "--format", "json").out)
    (word,) = record["lines"][0]["words"]
    assert word["text"] == record["text"]
    assert [one["text"] for one in word["characters"]] == list(word["text"])
    assert 0 < word["confidence"] <= 1
    assert word["confidence"] <= min((one["confidence"] for one in word["characters"]), default=1)
    assert 'class="ocrx_word" title="bbox 0 0' in ask("read", room / "0.png", "--model", model, "--format", "hocr").out
    Image.fromarray(page(["the fox", "is gone"])).save(tmp_path / "page.png")
    found = json.loads(ask("read", tmp_path / "page.png", "--model", model, "--format", "json").out)
    assert [len(line["words"]) for line in found["lines"]] == [2, 2]
    assert len(ask("read", tmp_path / "page.png", "--model", model).lines) == 2
    assert len(ask("read", tmp_path / "page.png", room / "1.png", "--model", model).lines) == 2, "a line for each file"
    assert len(ask("read", tmp_path / "page.png", "--model", model, "--cut", "word").lines) == 1


def test_batched_is_alone_and_exact_is_packed(model: Path, room: Path) -> None:
    reader: Any = saccade.load(model)
    files = [room / f"{number}.png" for number in range(12)]
    together = reader(files)
    assert [one.text for one in together] == [reader(file).text for file in files]
    exact = saccade.load(model, "exact")(files)
    # A model that learnt hardly anything may choose another letter for a rounding error.
    same = [(one.score, other.score) for one, other in zip(exact, together, strict=True) if one.text == other.text]
    assert len(same) >= 6
    np.testing.assert_allclose(*zip(*same, strict=True), atol=0.02)


def test_every_letter_has_a_look(model: Path, room: Path, tmp_path: Path) -> None:
    answer = saccade.load(model, "exact")(room / "2.png")
    cross = answer.looks.select("cross")
    assert cross[0].weights_NTS.shape[1:] == (len(answer.text) + 1, 8 * 32)
    assert answer.looks.target == [*answer.text, "(end)"]
    assert ask("read", room / "2.png", "--model", model, "--look", tmp_path / "look.png").code == 0
    assert (tmp_path / "look.png").stat().st_size > 1_000


def test_it_is_scored_on_its_own_part_and_on_tables(model: Path, room: Path) -> None:
    own = ask("evaluate", model)
    assert own.code == 0, own
    assert [line.split(",")[0].split(" ")[0] for line in own.lines] == ["words", "calibration"]
    assert "words:90" in ask("evaluate", model, room / "labels.tsv").lines[0]


def test_errors_are_one_line(model: Path, room: Path, tmp_path: Path) -> None:
    insist_one_line(ask("read", room / "0.png"), 2, ["no reader is bundled", "train reader"])
    insist_one_line(ask("train", "reading", room / "none.tsv", "--out", tmp_path / "x"), 1, ["none.tsv"])
    Image.new("L", (60, 60), 255).save(tmp_path / "white.png")
    assert ask("read", tmp_path / "white.png", "--model", model, "--cut", "page").lines == [""]


def test_the_recipe_is_read_and_its_second_loss_is_one_line() -> None:
    table = read_toml(Path(saccade.__file__).parent / "recipes" / "reader.toml")
    recipe = ReadingRecipe.read(table, where="reader")
    assert recipe.model.readers["source"].front_end.grid == (2, 32)
    assert ReadingRecipe.read(changed(table, [("ctc", 0)], ReadingRecipe), where="reader").ctc == 0


def test_pointing_is_counted_over_letters_that_were_read_right(model: Path) -> None:
    reader: Any = saccade.load(model, "exact")
    pixels = DRAWER(0)[0]
    text = "ao"
    word = ReadWord(text, WordBox(0, 0, WIDTH, HEIGHT), 1.0, [1.0, 1.0], reader.vocabulary.encode([text])[0], pixels)
    everywhere, nowhere = ([[0.0, 0.0, WIDTH, HEIGHT]], [[-9.0, -9.0, 1.0, 1.0]])
    for boxes, value in ((everywhere, 100), (nowhere, 0)):
        hit, chance = pointing_scores(reader, [Photographed(pixels, "Ao", np.array(boxes * 2))], [word])
        assert hit.value == value
        assert chance.value == pytest.approx(100 if value else 100 / WIDTH / HEIGHT)
    assert pointing_scores(reader, [Photographed(pixels, "xx", np.array(everywhere * 2))], [word]) == []


def test_an_interrupted_training_goes_on_bit_for_bit(room: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the second loss, batch norm and distortions that depend on numbers of epochs."""
    train: Any = saccade.train
    recipe = model / "recipe.toml"
    train(recipe, out=room / "whole", quiet=True)
    monkeypatch.setattr("saccade.train.loop._choose", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        train(recipe, out=room / "cut", quiet=True)
    monkeypatch.undo()
    (last,) = (room / "cut" / "checkpoints").glob("step-*6")
    shutil.rmtree(last)
    train(recipe, out=room / "cut", resume=True, quiet=True)
    whole, cut = (load_file(room / run / "model.safetensors") for run in ("whole", "cut"))
    assert all(np.array_equal(whole[name], cut[name]) for name in whole)
