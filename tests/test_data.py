"""Data: files give the same pairs or a clear error, batches are shifted and padded right, the order can be resumed."""

import gzip
import json
import socket
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.batches import SequencePairs
from saccade.data.prepared import keep, kept
from saccade.data.ragged import Ragged, in_order
from saccade.data.sampler import Sampler, plan_epoch
from saccade.data.text import data_folders, find, read_lines, read_pairs
from saccade.errors import UserError
from saccade.sources.text import pad_sources
from saccade.tokens.marks import Marks

MARKS = Marks()
BEGIN, END, PAD = MARKS.begin, MARKS.end, MARKS.pad

PAIRS = [("this cat", "este gato"), ("ñandú 🙂", "\u2028 other\x0bseparators\x85 stay"), ('"quoted"', "it's")]
SOURCES, TARGETS = ("".join(side + "\n" for side in sides) for sides in zip(*PAIRS, strict=True))
TABLE = "".join(f"{source}\t{target}\n" for source, target in PAIRS)


def write(path: Path, text: str | bytes) -> Path:
    content = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


# Files


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["unix", "windows"])
def test_a_table_and_two_files_plain_or_gzip_give_the_same_pairs(tmp_path: Path, suffix: str, line_end: str) -> None:
    table, source, target = (
        write(tmp_path / f"{name}{suffix}", text.replace("\n", line_end))
        for name, text in (("table.tsv", TABLE), ("text.en", SOURCES), ("text.es", TARGETS))
    )
    assert read_pairs([table]) == PAIRS
    assert read_pairs([source, target]) == PAIRS


def test_a_last_line_needs_no_line_end(tmp_path: Path) -> None:
    assert read_pairs([write(tmp_path / "table.tsv", TABLE.removesuffix("\n"))]) == PAIRS


def test_a_byte_order_mark_is_no_part_of_the_first_sentence(tmp_path: Path) -> None:
    assert read_pairs([write(tmp_path / "table.tsv", b"\xef\xbb\xbf" + TABLE.encode())]) == PAIRS


def test_more_columns_than_two_are_left_out(tmp_path: Path) -> None:
    assert read_pairs([write(tmp_path / "t.tsv", "one\tuno\tCC-BY 2.0\ntwo\tdos\n")]) == [
        ("one", "uno"),
        ("two", "dos"),
    ]


def test_pairs_with_an_empty_side_are_left_out_and_the_others_stay_aligned(tmp_path: Path) -> None:
    source = write(tmp_path / "text.en", "one\n\nthree\n \nfive\n")
    target = write(tmp_path / "text.es", "uno\ndos\n\ncuatro\ncinco\n")
    assert read_pairs([source, target]) == [("one", "uno"), ("five", "cinco")]
    assert read_pairs([write(tmp_path / "t.tsv", "one\tuno\n\n\tdos\nfive\tcinco\n")]) == [
        ("one", "uno"),
        ("five", "cinco"),
    ]


def assert_refused(paths: list[Path], *parts: str) -> None:
    """One line, which names what it must."""
    with pytest.raises(UserError) as caught:
        read_pairs(paths)
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_files_of_different_length_are_refused_with_both_numbers(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a.en", "1\n2\n3\n"), write(tmp_path / "a.es", "1\n2\n")
    assert_refused([source, target], f"{source} has 3 lines", f"{target} has 2")


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_bytes_that_are_not_utf8_are_refused_with_file_line_and_column(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"latin.tsv{suffix}", b"one\tuno\ntwo\tdos\n" + "ñandú\tx\n".encode("latin-1"))
    assert_refused([path], f"{path}, line 3", "0xf1", "column 1")


def test_a_line_without_a_tab_is_refused_with_its_number(tmp_path: Path) -> None:
    path = write(tmp_path / "t.tsv", "one\tuno\ntwo dos\n")
    assert_refused([path], f"{path}, line 2", "no tab")


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    here = write(tmp_path / "a.en", "1\n")
    assert_refused([tmp_path / "none.tsv"], f"{tmp_path / 'none.tsv'}: no such file")
    assert_refused([here, tmp_path / "none.es"], f"{tmp_path / 'none.es'}: no such file")
    assert_refused([tmp_path], f"{tmp_path}: is a folder")


@pytest.mark.parametrize("name", ["t.tsv", "t.tsv.gz"])
@pytest.mark.parametrize("content", ["", "\n\n \n", "\t\n"], ids=["empty", "blank lines", "empty sides"])
def test_a_file_without_pairs_is_refused(tmp_path: Path, name: str, content: str) -> None:
    path = write(tmp_path / name, content)
    assert_refused([path], str(path), "no sentence pairs")


def test_a_gzip_file_that_is_cut_damaged_or_none_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(TABLE.encode() * 2000)
    damaged = whole[:-6] + bytes([whole[-6] ^ 0xFF]) + whole[-5:]  # in the checksum: all lines can still be read
    for name, content in {"cut": whole[:-20], "head": whole[:5], "damaged": damaged, "plain": TABLE.encode()}.items():
        path = tmp_path / f"{name}.tsv.gz"
        path.write_bytes(content)
        assert_refused([path], f"{path}: not a whole gzip file")


@pytest.mark.parametrize("name", ["text", "text.gz"])
def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    # A socket is there but cannot be opened, not even by root, who runs these tests in a container.
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as unopenable:
        unopenable.bind(name)
        assert_refused([Path(name)], f"{name}: ")


def test_lines_are_read_one_at_a_time(tmp_path: Path) -> None:
    # Line 2 is broken; who asks for line 1 only never hears of it.
    path = write(tmp_path / "text", b"fine\n\xff\n")
    assert next(read_lines(path)) == "fine"


def test_data_is_found_in_the_first_folder_that_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_folder, from_environment = tmp_path / "given", tmp_path / "environment"
    for folder in (given_folder, from_environment):
        folder.mkdir()
        write(folder / "both.tsv", "x")
    write(from_environment / "one.tsv", "x")
    monkeypatch.setenv("SACCADE_DATA", str(from_environment))
    folders = data_folders(given_folder)
    assert find("both.tsv", folders) == given_folder / "both.tsv"
    assert find("one.tsv", folders) == from_environment / "one.tsv"
    assert data_folders(None) == [from_environment, Path("data")]
    with pytest.raises(UserError, match=r"none.tsv not found in .*given, .*environment, data; .*--data"):
        find("none.tsv", folders)


# Batches


def test_targets_are_shifted_right_and_everything_is_padded() -> None:
    pairs = SequencePairs(Ragged.of([[5], [6, 7, 8], [9, 9]]), Ragged.of([[10, 11], [12], [13, 14, 15]]), MARKS)
    batch = pairs.batch(np.array([2, 0]))
    assert batch.source.tolist() == [[9, 9, END], [5, END, PAD]]
    assert batch.source_mask is not None
    assert batch.source_mask.tolist() == [[True, True, True], [True, True, False]]
    assert batch.target_BT.tolist() == [[BEGIN, 13, 14, 15], [BEGIN, 10, 11, PAD]]
    assert batch.labels_BT.tolist() == [[13, 14, 15, END], [10, 11, END, PAD]]
    assert batch.indices.tolist() == [2, 0]
    assert len(pairs) == 3


ID = st.integers(END + 1, 30)
SEQUENCES = st.lists(st.tuples(st.lists(ID, max_size=6), st.lists(ID, max_size=6)), min_size=1, max_size=8)


@given(SEQUENCES, st.data())
def test_a_batch_holds_the_chosen_examples_and_nothing_else(
    sequences: list[tuple[list[int], list[int]]], data: st.DataObject
) -> None:
    sources, targets = zip(*sequences, strict=True)
    pairs = SequencePairs(Ragged.of(sources), Ragged.of(targets), MARKS)
    chosen = data.draw(st.lists(st.integers(0, len(sequences) - 1), min_size=1, max_size=5))
    batch = pairs.batch(np.array(chosen))
    source_sizes, target_sizes = pairs.sizes()
    assert batch.source.shape == (len(chosen), source_sizes[chosen].max())
    assert batch.target_BT.shape == batch.labels_BT.shape == (len(chosen), target_sizes[chosen].max())
    for row, index in enumerate(chosen):
        source, target = sequences[index]
        assert batch.source[row].tolist() == [*source, END] + [PAD] * (batch.source.shape[1] - len(source) - 1)
        assert batch.target_BT[row, : len(target) + 1].tolist() == [BEGIN, *target]
        assert batch.labels_BT[row, : len(target) + 1].tolist() == [*target, END]
        assert (batch.target_BT[row, len(target) + 1 :] == PAD).all()
        assert (batch.labels_BT[row, len(target) + 1 :] == PAD).all()
    if batch.source_mask is None:
        assert (batch.source != PAD).all()
    else:
        assert torch.equal(batch.source_mask, batch.source != PAD)
    if batch.real_BT is None:
        assert (batch.labels_BT != PAD).all()
    else:
        assert torch.equal(batch.real_BT, batch.labels_BT != PAD)


def test_sources_of_one_length_need_no_mask() -> None:
    assert pad_sources([[5, 6], [7, 8]], MARKS)[1] is None


@given(st.lists(st.integers(1, 60), min_size=1, max_size=60), st.integers(1, 200))
def test_in_order_gives_each_example_once_longest_first_within_the_budget(lengths: list[int], budget: int) -> None:
    sizes = np.array(lengths)
    batches = list(in_order(sizes, budget))
    order = np.concatenate(batches)
    assert sorted(order.tolist()) == list(range(len(lengths)))
    assert (np.diff(sizes[order]) <= 0).all()
    for batch in batches:
        assert len(batch) == 1 or sizes[batch].max() * len(batch) <= budget


# The order of training

LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=80)


def realistic_sizes(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Sentence lengths like those of a parallel corpus: skewed, and alike on both sides."""
    random = np.random.default_rng(seed)
    source = np.clip(random.lognormal(2.2, 0.5, count), 1, 100)
    target = np.clip(source * random.normal(1.1, 0.2, count), 1, 120)
    return source.astype(np.int64) + 1, target.astype(np.int64) + 1


def as_lists(batches: list[np.ndarray]) -> list[list[int]]:
    return [batch.tolist() for batch in batches]


@given(LENGTHS, st.integers(1, 200), st.integers(0, 5), st.integers(0, 5))
def test_an_epoch_holds_every_example_once_within_the_budget(
    lengths: list[tuple[int, int]], budget: int, seed: int, epoch: int
) -> None:
    source, target = np.array(lengths).T
    batches = plan_epoch(source, target, budget, seed, epoch)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        # One example larger than the budget still has to go somewhere: alone.
        assert len(batch) == 1 or max(source[batch].max(), target[batch].max()) * len(batch) <= budget


def test_epochs_differ_and_seeds_differ_and_the_same_is_the_same() -> None:
    sizes = realistic_sizes(500)
    plan = as_lists(plan_epoch(*sizes, 512, 1, 0))
    assert as_lists(plan_epoch(*sizes, 512, 1, 0)) == plan
    for other in (as_lists(plan_epoch(*sizes, 512, 1, 1)), as_lists(plan_epoch(*sizes, 512, 2, 0))):
        assert sorted(map(sorted, other)) != sorted(map(sorted, plan)), "other batches, not only another order of them"
        assert other != plan


def test_batches_do_not_come_in_order_of_length() -> None:
    source, target = realistic_sizes(2000)
    longest = np.array([target[batch].max() for batch in plan_epoch(source, target, 512, 1, 0)])
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.3


def test_the_global_random_generators_are_left_alone() -> None:
    np.random.seed(3)
    expected = np.random.random(3).tolist()
    np.random.seed(3)
    before = torch.get_rng_state()
    sampler = Sampler(*realistic_sizes(100), budget=128, seed=0)
    for _ in range(30):
        next(sampler)
    assert np.random.random(3).tolist() == expected
    assert torch.equal(torch.get_rng_state(), before)


def test_a_sampler_goes_through_epoch_after_epoch() -> None:
    sizes = realistic_sizes(200)
    sampler = Sampler(*sizes, budget=256, seed=5)
    for epoch in range(3):
        plan = as_lists(plan_epoch(*sizes, 256, 5, epoch))
        assert [next(sampler).tolist() for _ in plan] == plan
        assert sampler.progress == epoch + 1


def test_resumed_from_any_point_the_same_batches_follow() -> None:
    sizes = realistic_sizes(60)
    uninterrupted = Sampler(*sizes, budget=128, seed=5)
    epoch = len(uninterrupted.batches)
    everything = [next(uninterrupted).tolist() for _ in range(4 * epoch)]
    sampler = Sampler(*sizes, budget=128, seed=5)
    for done in range(2 * epoch + 2):
        # Through JSON, as in a checkpoint.
        state = json.loads(json.dumps(sampler.state_dict()))
        resumed = Sampler(*sizes, budget=128, seed=5)
        resumed.load_state_dict(state)
        assert resumed.progress == sampler.progress
        assert [next(resumed).tolist() for _ in range(epoch + 3)] == everything[done : done + epoch + 3]
        next(sampler)


def test_with_copies_an_epoch_goes_through_its_copy_and_can_be_resumed() -> None:
    sizes = realistic_sizes(90)
    starts = [0, 20, 50]
    sampler = Sampler(*sizes, budget=128, seed=5, starts=starts)
    for epoch in range(7):
        start, stop = [*starts, 90][epoch % 3 : epoch % 3 + 2]
        plan = plan_epoch(sizes[0][start:stop], sizes[1][start:stop], 128, 5, epoch)
        for batch in plan:
            state = json.loads(json.dumps(sampler.state_dict()))
            assert next(sampler).tolist() == (start + batch).tolist()
            resumed = Sampler(*sizes, budget=128, seed=5, starts=starts)
            resumed.load_state_dict(state)
            assert next(resumed).tolist() == (start + batch).tolist()
        assert sampler.progress == epoch + 1


def test_epochs_are_told_from_the_number_of_batches() -> None:
    sizes = np.full(100, 4), np.full(100, 4)
    sampler = Sampler(*sizes, budget=40, seed=5)
    assert sampler.epochs(25) == [(0, 1.0), (0, 1.0), (0, 0.5)]
    sampler = Sampler(*sizes, budget=40, seed=5, starts=[0, 60])
    assert sampler.epochs(12) == [(0, 1.0), (1, 1.0), (0, pytest.approx(1 / 3))]


def test_batches_are_at_least_nine_tenths_full() -> None:
    source, target = realistic_sizes(20_000)
    batches = plan_epoch(source, target, 2048, 1, 0)
    padded_target = sum(len(batch) * int(target[batch].max()) for batch in batches)
    padded_source = sum(len(batch) * int(source[batch].max()) for batch in batches)
    assert target.sum() / padded_target >= 0.9
    assert (source.sum() + target.sum()) / (padded_source + padded_target) >= 0.9
    assert padded_target / (2048 * len(batches)) >= 0.8, "and as large as they may be"


def test_arrays_are_kept_once_and_mapped(tmp_path: Path) -> None:
    arrays = {"flat": np.arange(1000, dtype=np.int32), "count": np.array(7)}
    for mapped in (keep(tmp_path / "prepared", arrays), kept(tmp_path / "prepared")):
        assert mapped is not None
        assert all(np.array_equal(mapped[name], array) for name, array in arrays.items())
        assert isinstance(mapped["flat"], np.memmap)
    assert [path.name for path in tmp_path.iterdir()] == ["prepared"]


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "no manifest", "odd manifest"])
def test_arrays_that_are_not_what_was_kept_are_not_used(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "prepared"
    keep(folder, {"flat": np.arange(1000, dtype=np.int32)})
    file, manifest = folder / "flat.npy", folder / "manifest.json"
    content = bytearray(file.read_bytes())
    if damage == "missing":
        file.unlink()
    elif damage == "cut":
        file.write_bytes(content[:-10])
    elif damage == "flipped":
        content[-5] ^= 1
        file.write_bytes(content)
    elif damage == "no manifest":
        manifest.unlink()
    else:
        manifest.write_text("[1, 2]")
    assert kept(folder) is None


def test_padding_is_counted() -> None:
    sampler = Sampler(np.array([2, 4, 4]), np.array([5, 5, 5]), budget=100, seed=0)
    assert sampler.fill() == (10 / 12, 1.0)
