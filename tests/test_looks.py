"""The record of looks: typed axes, one file, and pictures that show every word, in any script and on any terminal."""

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.cells import cell_len
from rich.console import Console
from safetensors.numpy import save

from saccade.axes import Actions, Axis, Grid, Pieces, Positions, Time
from saccade.errors import UserError, WrongUse
from saccade.look import lettering
from saccade.look.alignment import Alignment, clearest
from saccade.look.file import KEY
from saccade.look.picture import png, svg
from saccade.look.record import LayerLooks, Looks
from saccade.look.terminal import draw_in_terminal
from saccade.sites import Kind
from saccade.tokens.vocabulary import TokensConfig, train_vocabulary

SOURCE = Pieces(labels=(" this", " c", "at", "(end)"), alone=(3,))
TARGET = Pieces(labels=(" est", "e", " gato", "(end)"), alone=(3,))


def layer(
    rows: Axis = TARGET, columns: Axis = SOURCE, kind: Kind = "cross", memory: str = "source", seed: int = 0
) -> LayerLooks:
    weights = np.random.default_rng(seed).random((2, len(rows), len(columns))).astype(np.float32)
    name = f"decoder.blocks.{seed}.{kind}"
    return LayerLooks(name, kind, memory, weights / weights.sum(-1, keepdims=True), rows, columns)


@pytest.fixture
def looks() -> Looks:
    return Looks((layer(), layer(seed=1), layer(SOURCE, kind="encoder")), layer=2)


# Axes


def test_pieces_of_a_word_are_one_and_marks_stand_alone() -> None:
    axis = Pieces(labels=("<s>", "the", " c", "at", "[MASK]", "</s>"), alone=(0, 4, 5))
    assert [axis.name(group) for group in axis.groups()] == ["<s>", "the", "cat", "[MASK]", "</s>"]
    typed = Pieces(labels=(" a", "<", "s", ">", "b"))
    assert [typed.name(group) for group in typed.groups()] == ["a", "<", "s", ">", "b"], "typed, it is punctuation"
    letters = Pieces.letters(["k", "n", " ", "\x07"])
    assert [letters.name(group) for group in letters.groups()] == ["k", "n", "␣", "\ufffd"]


def test_bytes_of_a_character_are_drawn_as_the_character() -> None:
    vocabulary = train_vocabulary(TokensConfig.read({"kind": "bytes"}, where="test"), ["a cat"])
    (ids,) = vocabulary.encode(["a 猫é"])
    axis = Pieces.of(vocabulary, [vocabulary.marks.begin, *ids], end=True)
    assert [axis.name(group) for group in axis.groups()] == ["(begin)", "a", "猫é", "(end)"]
    assert len(axis) == len(ids) + 2, "every position keeps its place"
    cut = Pieces.of(vocabulary, ids[:-1])
    assert cut.name(cut.groups()[-1]) == "猫\ufffd", "half a character is none"
    letters = Pieces.letters(axis.labels)
    assert [letters.name([place]) for place in range(len(axis))][-6:] == ["…", "…", "猫", "…", "é", "(end)"]


def test_other_axes_name_every_position() -> None:
    axes: list[tuple[Axis, list[str]]] = [
        (Grid(height=2, width=2), ["1,1", "1,2", "2,1", "2,2"]),
        (Time(count=3, seconds=0.04), ["0.00 s", "0.04 s", "0.08 s"]),
        (Actions(labels=("left", "go")), ["left", "go"]),
        (Positions(count=2), ["1", "2"]),
    ]
    for axis, names in axes:
        assert [axis.name(group) for group in axis.groups()] == names
        assert len(axis) == len(names)


# The record


def test_layers_are_stacked_by_kind(looks: Looks) -> None:
    assert looks.cross.shape == (2, 2, 4, 4)
    assert looks.encoder.shape == (1, 2, 4, 4)
    assert looks.decoder.shape[0] == 0
    assert looks.source == list(SOURCE.labels)
    assert looks.target == list(TARGET.labels)


def test_words_collect_their_pieces(looks: Looks) -> None:
    found = looks.alignment(layer=1, head=2)
    assert (found.target, found.source) == (["este", "gato", "(end)"], ["this", "cat", "(end)"])
    assert found.weights_TS.sum(axis=1) == pytest.approx(1, abs=1e-6)
    weights = looks.layers[0].weights_NTS[1]
    assert found.weights_TS[0, 1] == pytest.approx(weights[:2, 1:3].sum() / 2, abs=1e-6)
    assert "layer 1 of 2, head 2 of 2" in found.title
    assert "layer 2 of 2, mean of 2 heads" in looks.alignment().title


@pytest.mark.parametrize("asked", [{"layer": 0}, {"layer": 3}, {"head": 0}, {"head": 3}, {"memory": "picture"}])
def test_what_is_not_there_is_said(looks: Looks, asked: dict[str, object]) -> None:
    with pytest.raises(WrongUse):
        looks.alignment(**asked)  # type: ignore[arg-type]


def test_each_memory_has_looks_of_its_own() -> None:
    looks = Looks((layer(columns=Grid(height=2, width=3), memory="picture"), layer(memory="question")))
    assert looks.memories == ["picture", "question"]
    assert looks.of_kind("cross", "picture").shape == (1, 2, 4, 6)
    assert looks.of_kind("cross", "question").shape == (1, 2, 4, 4)
    with pytest.raises(WrongUse, match="picture and question"):
        _ = looks.cross
    drawn = looks.alignments()
    assert [len(one.source) for one in drawn] == [6, 3]
    assert "at the picture" in drawn[0].title


def test_parts_are_all_kept_and_all_drawn(looks: Looks) -> None:
    longer = Looks((layer(Positions(count=9), Positions(count=7)),))
    joined = Looks.join([looks, longer, looks])
    assert joined.parts == 3
    assert np.array_equal(joined.part(0).cross, looks.cross)
    assert joined.part(1).cross.shape == (1, 2, 9, 7)
    with pytest.raises(WrongUse, match="3 parts"):
        _ = joined.cross
    assert [len(one.target) for one in replace(joined, layer=1).alignments()] == [3, 9, 3]


def test_the_clearest_layer_is_drawn_where_none_is_named() -> None:
    size = 6
    uniform = np.full((1, size, size), 1 / size, dtype=np.float32)
    sink = np.zeros((1, size, size), dtype=np.float32)
    sink[..., 0] = 1
    diagonal = np.eye(size, dtype=np.float32)[None]
    assert clearest([uniform, diagonal, sink]) == 1
    axis = Positions(count=size)
    layers = (LayerLooks(str(n), "encoder", "source", w, axis, axis) for n, w in enumerate([sink, uniform, diagonal]))
    assert "layer 3 of 3" in Looks(tuple(layers)).alignment().title


def test_a_record_says_briefly_what_it_is(looks: Looks) -> None:
    assert repr(looks) == "<Looks cross: 2 layers of 2 × 4 × 4; encoder: 1 layers of 2 × 4 × 4>"
    assert "3 parts" in repr(Looks.join([looks] * 3))
    assert len(repr(Looks.join([looks] * 300))) < 200
    assert "no attention" in repr(Looks(()))


def test_a_notebook_shows_the_picture(looks: Looks) -> None:
    assert (looks._repr_png_() or b"").startswith(b"\x89PNG")
    assert "data:image/png" in (looks._repr_html_() or "")
    assert Looks(())._repr_png_() is None
    assert Looks(())._repr_html_() is None


# The file


def test_what_is_saved_is_loaded(looks: Looks, tmp_path: Path) -> None:
    axes: list[Axis] = [Grid(height=2, width=3), Time(count=5, seconds=0.02), Actions(labels=("go", "猫"))]
    more = [layer(TARGET, axis, memory=axis.kind) for axis in axes]
    joined = replace(Looks.join([looks, Looks(tuple(more))]), layer=1)
    again = Looks.load(joined.save(tmp_path / "looks.safetensors"))
    assert again.layer == 1
    assert repr(again) == repr(joined)
    for mine, theirs in zip(joined.layers, again.layers, strict=True):
        assert replace(mine, weights_NTS=None) == replace(theirs, weights_NTS=None)  # type: ignore[arg-type]
        assert np.array_equal(mine.weights_NTS, theirs.weights_NTS)
    assert png(again.part(0).alignments()) == png(joined.part(0).alignments())


def stored(**changes: object) -> dict[str, object]:
    one = {"name": "x", "kind": "cross", "memory": "source", "rows": 0, "columns": 0}
    return {"format": 1, "axes": [{"kind": "positions", "count": 2}], "layers": [one | changes]}


GOOD = np.full((1, 2, 2), 0.5, dtype=np.float32)
BAD_FILES = {
    "not a file of this kind": b"hello",
    "nothing": b"",
    "only tensors": save({"0": GOOD}),
    "no JSON": save({"0": GOOD}, metadata={KEY: "{"}),
    "no table": save({"0": GOOD}, metadata={KEY: "[]"}),
    "deep": save({"0": GOOD}, metadata={KEY: "[" * 100_000}),
    "another format": save({"0": GOOD}, metadata={KEY: json.dumps(stored() | {"format": 2})}),
    "an unknown key": save({"0": GOOD}, metadata={KEY: json.dumps(stored() | {"code": "x"})}),
    "an unknown kind": save({"0": GOOD}, metadata={KEY: json.dumps(stored(kind="sideways"))}),
    "an axis that is not there": save({"0": GOOD}, metadata={KEY: json.dumps(stored(rows=3))}),
    "other sizes": save({"0": GOOD[:, :1]}, metadata={KEY: json.dumps(stored())}),
    "flat": save({"0": GOOD[0]}, metadata={KEY: json.dumps(stored())}),
    "no heads": save({"0": GOOD[:0]}, metadata={KEY: json.dumps(stored())}),
    "no numbers": save({"0": GOOD * np.nan}, metadata={KEY: json.dumps(stored())}),
    "negative": save({"0": -GOOD}, metadata={KEY: json.dumps(stored())}),
    "too few tables": save({"1": GOOD}, metadata={KEY: json.dumps(stored())}),
    "a huge grid": save(
        {"0": GOOD}, metadata={KEY: json.dumps(stored() | {"axes": [{"kind": "grid", "height": 10**9, "width": 1}]})}
    ),
    "cut short": save({"0": GOOD}, metadata={KEY: json.dumps(stored())})[:-4],
}


def test_the_bad_files_are_bad_for_what_their_names_say(tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(save({"0": GOOD}, metadata={KEY: json.dumps(stored())}))
    assert Looks.load(tmp_path / "good").cross.shape == (1, 1, 2, 2)


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_one_clear_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "looks"
    path.write_bytes(BAD_FILES[name])
    with pytest.raises(UserError, match="looks: ") as caught:
        Looks.load(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing", Path("/dev/zero")):
        with pytest.raises(UserError):
            Looks.load(path)


# Pictures


def faint(count: int, largest: float) -> Alignment:
    weights = np.zeros((count, count))
    weights[0, 0] = largest
    words = [f"w{n}" for n in range(count)]
    return Alignment(words, words, weights, "title")


@pytest.mark.parametrize(("largest", "top"), [(0.03, 0.05), (0.3, 0.4), (0.79, 0.8), (0.97, 1.0), (1.000001, 1.0)])
def test_the_scale_ends_just_above_the_largest_weight(largest: float, top: float) -> None:
    assert faint(3, largest).top == top
    assert any(f">{top:.{places}f}<" in svg([faint(9, largest)]).decode() for places in (1, 2))


def test_faint_looks_are_seen() -> None:
    picture = Image.open(io.BytesIO(png([faint(12, 0.05)]))).convert("RGB")
    colours = picture.getcolors(1_000_000) or []
    assert sum(count for count, (red, _, blue) in colours if red < 40 and blue > 90) > 1_000, "the cell is dark"


def test_text_in_an_svg_is_text_in_any_script() -> None:
    words = ["<s>", "猫", "a & b", "(end)"]
    content = svg([Alignment(words, words, np.eye(4), "self-attention")]).decode()
    for word in ("&lt;s&gt;", "猫", "a &amp; b", "self-attention"):
        assert f">{word}<" in content
    assert "<path" not in content


def test_letters_without_a_font_are_replaced_and_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lettering, "_others", tuple)
    monkeypatch.setattr(lettering, "_complained", set())
    lettering._other.cache_clear()
    words = ["猫が好き", "мир", "ελλ", "is"]
    for _ in range(2):
        png([Alignment(words, words, np.eye(4), "title")])
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "猫" in said
    assert lettering.VARIABLE in said
    lettering._other.cache_clear()
    assert lettering.lettering("猫 is", 20)[1] == "□ is"
    assert lettering.lettering("мир ελλ", 20)[1] == "мир ελλ"


def test_another_font_is_taken_where_it_knows_more(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {None: "", "one": "猫", "two": "猫が"}
    monkeypatch.setattr(lettering, "_others", lambda: ("one", "two"))
    monkeypatch.setattr(lettering, "_draws", lambda path, letter: letter in known[path])
    lettering._other.cache_clear()
    assert lettering._other("猫が") == "two"
    lettering._other.cache_clear()


def test_several_panels_stand_on_one_sheet(looks: Looks, tmp_path: Path) -> None:
    one = Image.open(looks.picture(tmp_path / "one.png"))
    many = Image.open(Looks.join([looks] * 12).picture(tmp_path / "many.png"))
    assert one.width < many.width <= 1_700
    assert many.height > 2 * one.height
    drawn = Looks.join([looks] * 12).picture(tmp_path / "many.svg").read_text("utf-8")
    assert drawn.count(">gato<") == 12
    assert drawn.count("mean of 2 heads") == 1, "the title they share"


def test_a_picture_beyond_all_measure_is_refused() -> None:
    words = ["w" * 3_000] * 300
    with pytest.raises(match="too large"):
        png([Alignment(words, words, np.eye(300), "title")])


# The terminal


def shown(alignment: Alignment, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    draw_in_terminal([alignment], console)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [40, 80, 145])
def test_a_long_text_is_not_wider_than_the_terminal(width: int) -> None:
    words = [f"word{n}" for n in range(35)] + ["donaudampfschifffahrtsgesellschaftskapitän"]
    lines = shown(Alignment(words, words, np.eye(36), "cross-attention"), width)
    assert max(map(cell_len, lines)) <= width
    assert "panels" in "".join(lines[-2:])
    assert sum(line.count("100 ") for line in lines) == 36, "every weight is shown once"
    assert "left out" in "".join(lines)
    for word in words[:9]:
        assert sum(f"╭ {word}" == line.strip(" │") for line in lines) == 1


def test_a_short_text_is_one_panel() -> None:
    lines = shown(faint(5, 1.0), 80)
    assert len(lines) == 5 + 5 + 1
    assert "panel" not in lines[-1]


def test_double_width_letters_do_not_shift_the_columns() -> None:
    words = ["猫", "が", "sat", "全角文字"]
    lines = shown(Alignment(words, words, np.eye(4), "title"), 80)
    rows = lines[4:8]
    places = [cell_len(row[: row.index("100") if "100" in row else 0]) for row in rows]
    margin = cell_len("全角文字") + 2
    assert places == [margin + 4 * n for n in range(4)]
    assert len({cell_len(row.rstrip("\n")) for row in rows}) == 1
