"""The training and held-out streams of a language model, of texts that are too long to be in memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from saccade.data.long_texts import LONG, Counted, LongTexts, Piece, count, encoded, held_out, regrouped, to_learn_from
from saccade.data.prepared import keep
from saccade.errors import UserError
from saccade.pipelines.pipeline import Report
from saccade.tasks.texts import FilesConfig
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, train_vocabulary


def are_long(data: FilesConfig, folders: Sequence[Path]) -> bool:
    """Whether the files are read in pieces."""
    return LongTexts([*data.train, *data.valid], folders).size > LONG


def keep_long(
    data: FilesConfig,
    tokens: TokensConfig,
    folders: Sequence[Path],
    out: Path,
    *,
    lowercase: bool,
    marked: bool,
    report: Report,
) -> tuple[Vocabulary, dict[str, np.ndarray]]:
    """The vocabulary, which is stored, and the encoded streams, kept and mapped. Files are read several times: to count
    them, to learn from some of their pieces, to encode them."""
    training = LongTexts(data.train, folders, lowercase)
    counted = count(training)
    if data.valid:
        held = LongTexts(data.valid, folders, lowercase)
        characters = counted.characters + count(held).characters
        parts = (training.pieces, held.pieces)
    else:
        characters = counted.characters
        parts = (
            lambda: _of(training, counted, data, held=False),
            lambda: regrouped(_of(training, counted, data, held=True)),
        )
    vocabulary = train_vocabulary(tokens, to_learn_from(parts[0](), characters), spaced=False)
    vocabulary.save(out / "tokenizer.json")
    done = 0

    def told(more: int) -> None:
        nonlocal done
        done += more
        report(done, characters)

    text_bytes = sum(len(piece.text.encode()) for piece in parts[1]())
    if not text_bytes:
        raise UserError(f"the text is too short to hold {data.held_out_share:.0%} of it out")
    train, valid = (encoded(vocabulary, pieces(), marked=marked, told=told) for pieces in parts)
    return vocabulary, keep(out / "prepared", {"train": train, "valid": valid, "valid_bytes": np.array(text_bytes)})


def _of(texts: LongTexts, counted: Counted, data: FilesConfig, *, held: bool) -> Iterator[Piece]:
    split = held_out(texts.pieces(), counted, data.held_out_share)
    return (piece for piece, out in split if out == held)
