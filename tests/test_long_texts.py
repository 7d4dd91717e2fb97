"""Texts that are read in pieces give the streams of texts that are read at once, and hold little in memory."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from saccade.data import long_texts
from saccade.data.documents import TextFile
from saccade.data.long_texts import LongTexts, to_learn_from
from saccade.data.prepared import keep, kept
from saccade.data.stream import encode_documents
from saccade.tasks.long_texts import are_long, keep_long
from saccade.tasks.texts import FilesConfig, split_texts
from saccade.tokens.vocabulary import TokensConfig

LINES = [f"line {number} of a text that {'goes on ' * (number % 5)}\u2028and on" for number in range(500)]
TEXTS = {
    "whole": "\n".join(LINES) + "\n",
    "lines": "\n".join([*LINES[:30], "", *LINES[10:40]]) + "\n",
    "separated": "\n<|endoftext|>\n".join("\n".join(LINES[n : n + 90]) for n in range(0, 400, 45)) + "\n",
}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("share", [0.1, 0.013])
def test_pieces_give_the_same_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, share: float) -> None:
    monkeypatch.setattr(long_texts, "GROUP", 3000)
    (tmp_path / "one.txt").write_text(TEXTS[kind], encoding="utf-8")
    (tmp_path / "two.txt").write_text(TEXTS[kind][:3001].upper(), encoding="utf-8")
    files = [TextFile.model_validate({"file": name, "documents": kind}) for name in ("one.txt", "two.txt")]
    data = FilesConfig(train=files, held_out_share=share)
    told = list[tuple[int, int]]()
    tokens = TokensConfig(kind="bytes")
    vocabulary, arrays = keep_long(
        data, tokens, [tmp_path], tmp_path, lowercase=False, marked=True, report=lambda *done: told.append(done)
    )
    training, held = split_texts(data, [tmp_path], lowercase=False)
    assert np.array_equal(arrays["train"], encode_documents(vocabulary, training, marked=True))
    assert np.array_equal(arrays["valid"], encode_documents(vocabulary, held, marked=True))
    assert int(arrays["valid_bytes"]) == sum(len(text.encode()) for text in held)
    assert isinstance(arrays["train"], np.memmap)
    assert told[-1][0] == told[-1][1] == sum(map(len, training)) + sum(map(len, held))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    again = kept(tmp_path / "prepared")
    assert again is not None
    assert np.array_equal(again["train"], arrays["train"])


def test_a_long_text_is_never_whole_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_texts, "GROUP", 20_000)
    size = 1_000_000
    line = "a line of some forty letters, again now\n"
    (tmp_path / "long.txt").write_text(line * (size // len(line)))
    data = FilesConfig(train=[TextFile(file="long.txt")], held_out_share=0.1)
    tracemalloc.start()
    _, arrays = keep_long(
        data, TokensConfig(kind="bytes"), [tmp_path], tmp_path, lowercase=False, marked=False, report=lambda *_: None
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(arrays["train"]) == pytest.approx(0.9 * size, rel=0.01)
    assert peak < size


def test_a_row_in_parts_is_stored_as_the_row(tmp_path: Path) -> None:
    row = np.arange(1000, dtype=np.uint32)
    arrays = keep(tmp_path / "kept", {"row": iter(np.split(row, 10)), "whole": row})
    assert np.array_equal(arrays["row"], row)
    assert arrays["row"].dtype == row.dtype


def test_a_vocabulary_is_learnt_from_all_over_a_long_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.txt").write_text(TEXTS["whole"], encoding="utf-8")
    texts = LongTexts([TextFile(file="one.txt")], [tmp_path])
    characters = len(TEXTS["whole"])
    assert "".join(to_learn_from(texts.pieces(), characters)) == TEXTS["whole"]
    monkeypatch.setattr(long_texts, "LEARNT", characters // 4)
    some = list(to_learn_from(texts.pieces(), characters))
    assert 1 < len(some) < len(list(texts.pieces())) / 2
    assert not are_long(FilesConfig(train=[TextFile(file="one.txt")], held_out_share=0.1), [tmp_path])
