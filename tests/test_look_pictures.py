"""Looks at a picture and at a recording: a panel for every word, bright where it looked."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.cells import cell_len
from rich.console import Console

from saccade.axes import Grid, Pieces, Positions, Time
from saccade.errors import UserError
from saccade.look.alignment import align
from saccade.look.overlay import LONGER_SIDE, PicturePanels
from saccade.look.record import LayerLooks, Looks
from saccade.look.saccades import attended_points
from saccade.look.shapes import Box, Raster, Word
from saccade.look.terminal import draw_in_terminal

GRID, WORDS = Grid(height=3, width=4), Pieces(labels=(" a", " cat", " sits"))


@pytest.fixture
def looks() -> Looks:
    """Every word looks at one field: the first, the last, one in the middle."""
    weights = np.zeros((1, 3, 12), dtype=np.float32)
    weights[0, range(3), [0, 11, 5]] = 1
    return Looks((LayerLooks("cross", "cross", "picture", weights, WORDS, GRID),))


def test_a_word_lights_up_what_it_looked_at(looks: Looks) -> None:
    white = Image.new("RGB", (400, 300), "white")
    panels = [shape for shape in PicturePanels(looks.alignment(), GRID, white).shapes() if isinstance(shape, Raster)]
    assert len(panels) == 4, "one for each word, and the path"
    for panel, (row, column) in zip(panels[:3], [(0, 0), (2, 3), (1, 1)], strict=True):
        assert panel.picture.size == (LONGER_SIDE, LONGER_SIDE * 3 // 4)
        light = np.asarray(panel.picture.convert("L"), dtype=float)
        fields = light.reshape(3, light.shape[0] // 3, 4, light.shape[1] // 4).mean(axis=(1, 3))
        assert np.unravel_index(fields.argmax(), fields.shape) == (row, column)
        assert light.max() > 240
        assert light.min() < 70


def test_without_the_picture_its_fields_are_drawn(looks: Looks) -> None:
    shapes = list(PicturePanels(looks.alignment(), GRID).shapes())
    assert sum(isinstance(shape, Box) for shape in shapes) == 3 * 12 + 3, "fields, and a line under each word"
    assert {"a", "cat", "sits", "1"} <= {shape.text for shape in shapes if isinstance(shape, Word)}


def test_the_picture_comes_from_a_file_or_from_memory(looks: Looks, tmp_path: Path) -> None:
    image = Image.new("RGB", (60, 40), "green")
    image.save(tmp_path / "cat.png")
    one = looks.picture(tmp_path / "one.png", image=tmp_path / "cat.png").read_bytes()
    assert one == looks.picture(tmp_path / "two.png", image=image).read_bytes()
    assert one != looks.picture(tmp_path / "three.png").read_bytes()
    drawn = looks.picture(tmp_path / "four.svg", image=image).read_text("utf-8")
    assert drawn.count("<image") == 4
    assert ">cat<" in drawn


@pytest.mark.parametrize("content", [b"", b"hello", b"\x89PNG\r\n\x1a\n" + bytes(40)])
def test_what_is_no_picture_is_one_clear_line(content: bytes, looks: Looks, tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(content)
    with pytest.raises(UserError, match=r"cat\.png: not a picture"):
        looks.picture(tmp_path / "x.png", image=tmp_path / "cat.png")
    with pytest.raises(UserError, match=r"missing\.png"):
        looks.picture(tmp_path / "x.png", image=tmp_path / "missing.png")
    assert not (tmp_path / "x.png").exists()


@pytest.mark.parametrize("width", [40, 80])
def test_fields_fit_the_terminal(looks: Looks, width: int) -> None:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    draw_in_terminal(looks.alignments(), console)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(cell_len, lines)) <= width
    assert "cat" in "".join(lines)


def test_a_grid_that_looks_at_itself_is_an_ordinary_table() -> None:
    assert align(np.eye(12), GRID, GRID, "title").grid is None


def test_a_long_recording_is_drawn_in_moments() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(1500), size=3)
    found = align(weights, Positions(count=3), Time(count=1500, seconds=0.02), "title")
    assert len(found.source) == 60
    assert found.source[:2] == ["0.00 s", "0.50 s"]
    assert found.weights_TS.sum(axis=1) == pytest.approx(1)


def test_words_that_look_where_all_do_carry_nothing() -> None:
    weights = np.full((1, 5, 12), 1 / 12, dtype=np.float32)
    weights[0, 1], weights[0, 3] = np.eye(12)[[4, 7]]
    words = Pieces(labels=(" a", " cat", " left", " dog", "(end)"), alone=(4,))
    alignment = Looks((LayerLooks("cross", "cross", "source", weights, words, GRID),)).alignment()
    assert alignment.carrying == alignment.steps == [1, 3]
    panels = PicturePanels(alignment, GRID, Image.new("RGB", (40, 30), "white"))
    shapes = list(panels.shapes())
    assert sum(isinstance(shape, Box) for shape in shapes) == 2, "two words are underlined"
    assert sum(isinstance(shape, Raster) for shape in shapes) == 6
    assert "underlined" in [shape.text for shape in shapes if isinstance(shape, Word)][-1]


def test_letters_are_joined_by_a_path_and_move(tmp_path: Path) -> None:
    weights = np.full((1, 4, 12), 0.01, dtype=np.float32)
    weights[0, range(4), [4, 5, 6, 0]] = 1
    letters = Pieces.letters(["c", "a", "t", "(end)"])
    looks = Looks((LayerLooks("cross", "cross", "source", weights, letters, GRID),))
    image = Image.new("RGB", (120, 40), "white")
    shapes = list(PicturePanels(looks.alignment(), GRID, image).shapes())
    assert sum(isinstance(shape, Raster) for shape in shapes) == 5, "a panel for each letter, and the path"
    assert "its saccades" in {shape.text for shape in shapes if isinstance(shape, Word)}
    points = attended_points(weights[0, :3], GRID, (400, 300))
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert all(100 < y < 200 for _, y in points)
    with Image.open(looks.picture(tmp_path / "moving.gif", image=image)) as moving:
        assert getattr(moving, "n_frames", 1) == 4
    with pytest.raises(UserError, match="a GIF shows looks at a picture"):
        looks.picture(tmp_path / "moving.gif")
