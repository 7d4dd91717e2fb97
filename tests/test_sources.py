"""What models read: every kind of source takes what it promises, refuses the rest in one line, and pads honestly."""

import contextlib
import io
import os
import wave
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from saccade.data.encoded import Texts
from saccade.errors import UserError, WrongUse
from saccade.sources.pair import PairSource
from saccade.sources.picture import PictureSource
from saccade.sources.picture_question import PictureQuestionSource
from saccade.sources.resample import resampled
from saccade.sources.sound import SoundSource
from saccade.sources.source import Source, padded
from saccade.sources.text import TextSource
from saccade.tokens.vocabulary import TokensConfig, train_vocabulary

SENTENCES = ["one two three four", "two cats see one dog", "four dogs"]
VOCABULARY = train_vocabulary(TokensConfig(vocabulary=320), SENTENCES)
RATE = 8_000


def png(pixels: np.ndarray, **options: Any) -> bytes:
    written = io.BytesIO()
    Image.fromarray(pixels).save(written, "PNG", **options)
    return written.getvalue()


def wav(samples: np.ndarray, *, rate: int = RATE, width: int = 2, channels: int = 1) -> bytes:
    """Samples from -1 to 1 as a WAV file."""
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        if width == 1:
            file.writeframes(np.rint(samples * 127 + 128).astype(np.uint8).tobytes())
        else:
            whole = np.rint(samples * (2 ** (8 * width - 1) - 1)).astype("<i4")
            file.writeframes(whole.reshape(-1, 1).view(np.uint8)[:, :width].tobytes())
    return written.getvalue()


def drawing(height: int, width: int, *, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def tone(samples: int) -> np.ndarray:
    return 0.5 * np.sin(np.arange(samples) / 3)


@dataclass(frozen=True)
class Kind:
    """A source, raw inputs of different sizes, raw inputs that are too large, and things that cannot be meant."""

    source: Source[Any, Any]
    raws: list[Any]
    too_large: list[Any]
    wrong: list[Any]


KINDS = {
    "text": Kind(TextSource(longest=50, vocabulary=VOCABULARY), [*SENTENCES, ""], ["x" * 51], [3, None, b"one", ["a"]]),
    "text, few tokens": Kind(
        TextSource(most_tokens=14, vocabulary=VOCABULARY), SENTENCES, ["a b c d e f g h i j k l m n o"], [3]
    ),
    "pair": Kind(
        PairSource(longest=50, context=16, vocabulary=VOCABULARY),
        ["one two", "one\ttwo three", ("four", "dogs see"), "a long text\tthat is cut, since it does not fit"],
        ["x" * 51, ("x" * 30, "y" * 30), "a\tb\tc"],
        [3, None, ("one", 2)],
    ),
    "picture": Kind(
        PictureSource(megapixels=0.001),
        [drawing(4, 6), drawing(9, 3), png(drawing(5, 5)), drawing(2, 2)[..., 0], drawing(3, 3) / 255],
        [drawing(101, 10), png(drawing(10, 101))],
        [3, None, drawing(2, 2).astype(int), np.zeros((2, 2, 2, 2)), np.full((2, 2), np.nan), np.full((2, 2), 2.0)],
    ),
    "picture, grey and padded": Kind(
        PictureSource(size_HW=(8, 8), fit="pad", channels=1),
        [drawing(4, 6), drawing(9, 3), drawing(8, 8), drawing(64, 2)],
        [],
        [()],
    ),
    "sound": Kind(
        SoundSource(rate=RATE, seconds=0.05),
        [wav(tone(100)), wav(tone(300), width=1), (tone(17), RATE), (tone(20).reshape(-1, 2), RATE)],
        [wav(tone(401)), (tone(401), RATE)],
        [3, None, (tone(5), "fast"), (np.ones(5, dtype=int), RATE), (np.full(5, 2.0), RATE)],
    ),
    "picture and question": Kind(
        PictureQuestionSource(PictureSource(megapixels=0.001), TextSource(longest=30, vocabulary=VOCABULARY)),
        [(drawing(4, 6), "one two"), (drawing(3, 3), "four dogs see"), (png(drawing(5, 2)), "")],
        [(drawing(101, 10), "one"), (drawing(2, 2), "x" * 31)],
        [3, "one", (drawing(2, 2), 3), (3, "one")],
    ),
}


def each_part(made: Any) -> list[Any]:
    return list(made) if isinstance(made, tuple) else [made]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def test_together_every_item_is_what_it_is_alone(kind: Kind) -> None:
    """Padded = unpadded at real positions, in order; all else is masked."""
    items = [kind.source.read(raw) for raw in kind.raws]
    together = each_part(kind.source.collate(items))
    for number, item in enumerate(items):
        for whole, alone in zip(together, each_part(kind.source.collate([item])), strict=True):
            real = np.ones(alone.values.shape[1:], bool)
            if alone.mask is not None:
                real = np.broadcast_to(
                    alone.mask[0].reshape(alone.mask.shape[1:] + (1,) * (real.ndim - alone.mask.ndim + 1)), real.shape
                )
            within = tuple(slice(0, size) for size in alone.values.shape[1:])
            np.testing.assert_array_equal(whole.values[number][within][real], alone.values[0][real])
            if whole.mask is not None:
                places = within[: whole.mask.ndim - 1]
                expected = np.zeros(whole.mask.shape[1:], bool)
                expected[places] = True if alone.mask is None else alone.mask[0]
                np.testing.assert_array_equal(whole.mask[number], expected)


def test_sizes_and_labels_fit(kind: Kind) -> None:
    for raw in kind.raws:
        item = kind.source.read(raw)
        assert kind.source.size(item) >= 1
        assert "\n" not in kind.source.label(item)
        for labels in each_part(kind.source.labels(item)):
            assert len(labels) >= 1
            assert all(labels.name(group) for group in labels.groups())


def test_reading_all_is_reading_each(kind: Kind) -> None:
    raws = [*kind.raws, *kind.too_large, *kind.wrong]
    for raw, found in zip(raws, kind.source.read_all(raws), strict=True):
        if isinstance(found, UserError):
            with pytest.raises(type(found)) as told:
                kind.source.read(raw)
            assert str(told.value) == str(found)
        else:
            assert kind.source.label(found) == kind.source.label(kind.source.read(raw))


def test_too_large_and_wrong_inputs_are_told_apart(kind: Kind) -> None:
    for raw in kind.too_large:
        with pytest.raises(UserError) as told:
            kind.source.read(raw)
        assert told.value.exit_code == 1
    for raw in kind.wrong:
        with pytest.raises(WrongUse):
            kind.source.read(raw)


def test_one_input_is_told_from_many(kind: Kind) -> None:
    assert all(kind.source.is_one(raw) for raw in kind.raws)
    for many in ([kind.raws[0]], (kind.raws[0],), iter(kind.raws), {}, None, 3):
        assert not kind.source.is_one(many)


# Padding


@given(
    st.lists(arrays.arrays(np.float32, arrays.array_shapes(min_dims=2, max_dims=2, max_side=5)), min_size=1, max_size=5)
)
def test_padding_keeps_every_number_and_marks_its_place(some: list[np.ndarray]) -> None:
    rows, mask = padded(some, axes=2)
    assert (mask is None) == (len({array.shape for array in some}) == 1)
    for number, array in enumerate(some):
        height, width = array.shape
        np.testing.assert_array_equal(rows[number, :height, :width], array)
        if mask is not None:
            assert mask[number].sum() == array.size
            assert mask[number, :height, :width].all()


@given(st.lists(st.tuples(st.text("abc ", max_size=30), st.text("abc ", max_size=30)), min_size=1, max_size=6))
def test_pairs_are_read_as_they_are_trained_on(pairs: list[tuple[str, str]]) -> None:
    source = PairSource(vocabulary=VOCABULARY, context=20)
    found = source.collate([source.read(pair) for pair in pairs])
    texts = Texts.of(VOCABULARY, [first for first, _ in pairs], [second for _, second in pairs], 20)
    trained = texts.arrays(np.arange(len(pairs)))
    np.testing.assert_array_equal(found.values, trained.tokens_BT)
    np.testing.assert_array_equal(found.segments, trained.segments_BT)


def test_text_that_looks_like_a_mark_is_text() -> None:
    source = TextSource(vocabulary=VOCABULARY)
    item = source.read("</s>")
    assert not set(item.ids) & VOCABULARY.marks.special
    assert source.labels(item).labels[-1] == "(end)"


# Pictures


def test_a_file_its_bytes_its_image_and_its_array_are_one_picture(tmp_path: Path) -> None:
    pixels, source = drawing(7, 5), PictureSource()
    (tmp_path / "one.png").write_bytes(png(pixels))
    for raw in (tmp_path / "one.png", str(tmp_path / "one.png"), png(pixels), Image.fromarray(pixels), pixels):
        np.testing.assert_array_equal(source.read(raw).pixels_HWC, pixels)
    assert source.label(source.read(tmp_path / "one.png")) == str(tmp_path / "one.png")


def test_a_picture_is_turned_as_its_camera_says() -> None:
    pixels = drawing(4, 6)
    turned = Image.Exif()
    turned[0x0112] = 6  # the camera was held upright: turn by 90 degrees
    written = io.BytesIO()
    Image.fromarray(pixels).save(written, "PNG", exif=turned)
    np.testing.assert_array_equal(PictureSource().read(written.getvalue()).pixels_HWC, np.rot90(pixels, -1))


def test_what_is_transparent_is_white_and_what_is_deep_is_scaled() -> None:
    clear = Image.new("RGBA", (2, 2), (0, 0, 0, 0))
    assert (PictureSource().read(clear).pixels_HWC == 255).all()
    deep = Image.fromarray(np.array([[0, 65535], [32896, 257]], dtype=np.uint16))
    assert PictureSource(channels=1).read(deep).pixels_HWC[..., 0].tolist() == [[0, 255], [128, 1]]


def test_a_shape_is_kept_where_it_is_padded() -> None:
    source = PictureSource(size_HW=(8, 8), fit="pad")
    batch = source.collate([source.read(np.full((4, 2, 3), 255, np.uint8))])
    assert batch.values.shape == (1, 8, 8, 3)
    assert batch.mask is not None
    assert batch.mask[0].sum() == 8 * 4
    assert (batch.values[0][batch.mask[0]] == 1).all()
    assert (batch.values[0][~batch.mask[0]] == 0).all()
    assert PictureSource(size_HW=(8, 8)).collate([source.read(drawing(8, 8))]).mask is None


def test_a_bomb_is_refused_by_its_header(monkeypatch: pytest.MonkeyPatch) -> None:
    content = png(np.zeros((6_000, 6_000), np.uint8))
    assert len(content) < 100_000
    monkeypatch.setattr(Image.Image, "load", lambda self: pytest.fail("decoded"))
    with pytest.raises(UserError, match=r"36\.0 megapixels; at most 25"):
        PictureSource().read(content)


DAMAGED: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "text": lambda: b"no picture",
    "cut off": lambda: png(drawing(40, 40))[:-2000],
    "a byte changed": lambda: png(drawing(40, 40)).replace(b"IDAT", b"IDAX"),
    "PostScript": lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_picture_is_one_line(how: str, tmp_path: Path) -> None:
    (tmp_path / "odd.png").write_bytes(DAMAGED[how]())
    with pytest.raises(UserError) as told:
        PictureSource().read(tmp_path / "odd.png")
    assert str(told.value).startswith(str(tmp_path / "odd.png"))
    assert "BytesIO" not in str(told.value)


@given(st.binary(max_size=200), st.integers(0, 400))
def test_random_damage_is_told_and_never_a_crash(noise: bytes, place: int) -> None:
    content = png(drawing(12, 12))
    for source, damaged in ((PictureSource(), content), (SoundSource(rate=None), wav(tone(100)))):
        with contextlib.suppress(UserError):
            source.read(damaged[:place] + noise + damaged[place + len(noise) :])


# Files


def test_only_regular_files_are_read_and_nothing_is_fetched(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    for raw, told in {
        tmp_path / "pipe.png": "a pipe, not a file",
        "/dev/zero": "a device, not a file",
        tmp_path: "a folder",
        tmp_path / "none.png": "No such file",
        "https://example.org/a.png": "fetched",
        "a\0b": "null byte",
    }.items():
        for source in (PictureSource(), SoundSource()):
            with pytest.raises(UserError, match=told):
                source.read(raw)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large.png").open("wb") as file:
        file.truncate(2**40)  # takes no space
    with pytest.raises(UserError, match="bytes; at most"):
        PictureSource().read(tmp_path / "large.png")


# Sounds


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_samples_of_every_width_are_the_same_sound(width: int) -> None:
    samples = tone(200)
    found = SoundSource(rate=RATE).read(wav(samples, width=width))
    assert (found.rate, found.samples.dtype) == (RATE, np.float32)
    np.testing.assert_allclose(found.samples, samples, atol=1.1 / 2 ** (8 * width - 1) + 1e-6)


def test_channels_are_mixed() -> None:
    left, right = tone(50), np.zeros(50)
    stereo = wav(np.stack([left, right], axis=1).reshape(-1), channels=2)
    np.testing.assert_allclose(SoundSource(rate=RATE).read(stereo).samples, left / 2, atol=1e-4)


def test_a_long_sound_is_refused_by_its_header() -> None:
    content = bytearray(wav(tone(10)))
    content[40:44] = (2 * RATE * 3600).to_bytes(4, "little")  # an hour, it says
    with pytest.raises(UserError, match=r"3600\.0 seconds; at most 60"):
        SoundSource(rate=RATE, seconds=60).read(bytes(content))


def test_a_tone_of_another_rate_is_the_same_tone() -> None:
    """In the middle, away from the silence around it; and what no lower rate can hold is gone."""
    for rate, wanted in (
        (16_000, 8_000),
        (8_000, 16_000),
        (44_100, 16_000),
        (48_000, 8_000),
        (11_025, 8_000),
        (8_001, 8_000),
    ):
        moments = np.arange(rate) / rate
        found = SoundSource(rate=wanted).read((0.5 * np.sin(2 * np.pi * 700 * moments), rate))
        assert (found.rate, len(found.samples)) == (wanted, wanted)
        expected = 0.5 * np.sin(2 * np.pi * 700 * np.arange(wanted) / wanted)
        middle = slice(wanted // 10, -wanted // 10)
        assert np.abs(found.samples - expected)[middle].max() < 2e-3
    above = np.sin(2 * np.pi * 5_000 * np.arange(16_000) / 16_000)
    assert np.abs(resampled(above, 16_000, 8_000)[800:-800]).max() < 1e-3


def test_positions_of_a_sound_are_told_in_seconds() -> None:
    source = SoundSource(rate=RATE, hop=0.01)
    axis = source.labels(source.read((tone(200), RATE)))
    assert [axis.name([place]) for place in range(len(axis))] == ["0.00 s", "0.01 s", "0.02 s"]
