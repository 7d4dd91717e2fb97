"""Files of llama2.c (github.com/karpathy/llama2.c): its first model format, version 0, and its tokenizer.bin."""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from mmap import mmap

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from saccade.errors import UserError
from saccade.tokens.pieces import BYTES, FIXED, MARKS, build

Content = bytes | mmap
"""A file, read or mapped: a large one need not be copied into memory."""
HEADER = struct.Struct("<7i")
NUMBERS = ("width", "hidden", "layers", "heads", "key_heads", "vocabulary", "context")
"""The header, in its order."""
MAGIC = 0x616B3432
"""How every later version begins ("ak42"); version 0 begins with its width."""

FIRST_PIECE = len(FIXED)
"""Ids in every vocabulary: the marks, the 256 bytes, the pieces."""
LONGEST_PIECE = 1024
"""Llama's own are 27 bytes at most; cutting a piece at every place costs the square of its length."""


@dataclass(frozen=True)
class Llama:
    """A model as it is in the file: the numbers of its header, and its weights by name."""

    width: int
    hidden: int
    layers: int
    heads: int
    key_heads: int
    """Heads of keys and values; each serves heads / key_heads heads of queries, neighbours first."""
    vocabulary: int
    context: int
    """The most tokens it was trained to see."""
    weights: Mapping[str, NDArray[np.float32]]
    """Views of the content. Matrices are [out, in], stacked over layers; `head` is there unless tied."""


def read_llama2c(content: Content, where: str) -> tuple[Llama, bytes]:
    """The model a file begins with, and the bytes after it; `where` names the file in complaints."""
    if len(content) < HEADER.size:
        raise UserError(f"{where}: {len(content)} bytes, but the header of a llama2.c model takes {HEADER.size}")
    header = dict(zip(NUMBERS, HEADER.unpack_from(content), strict=True))
    if header["width"] == MAGIC:
        raise UserError(f"{where}: a llama2.c model of version {header['hidden']}, but only version 0 can be read")
    # A negative vocabulary says that the output matrix is not the embedding.
    tied = header["vocabulary"] > 0
    header["vocabulary"] = abs(header["vocabulary"])
    _check_header(header, where)

    shapes = _shapes(header, tied)
    needed = HEADER.size + sum(4 * math.prod(shape) for shape in shapes.values())
    if len(content) < needed:
        raise UserError(
            f"{where}: {len(content):,} bytes, but the model in its header takes {needed:,};"
            " it is cut short, or no llama2.c model"
        )
    weights, offset = {}, HEADER.size
    for name, shape in shapes.items():
        weights[name] = np.frombuffer(content, "<f4", math.prod(shape), offset).reshape(shape)
        offset += 4 * math.prod(shape)
    # The angles of the rotary positions follow from the width and the context.
    del weights["cosines"], weights["sines"]
    return Llama(**header, weights=weights), content[needed:]


def _check_header(header: dict[str, int], where: str) -> None:
    no_model = "; is it a llama2.c model?"
    for name, number in header.items():
        if number < 1:
            raise UserError(f"{where}: its header says {number} for the {name}, but it must be at least 1{no_model}")
    width, heads, key_heads = header["width"], header["heads"], header["key_heads"]
    if width % heads:
        raise UserError(f"{where}: its width {width} cannot be shared out among {heads} heads{no_model}")
    if width // heads % 2:
        raise UserError(
            f"{where}: {heads} heads of {width // heads} numbers cannot be rotated in pairs: that is odd{no_model}"
        )
    if heads % key_heads:
        raise UserError(
            f"{where}: its {heads} heads cannot be shared out among {key_heads} heads of keys and values{no_model}"
        )


def _shapes(header: dict[str, int], tied: bool) -> dict[str, tuple[int, ...]]:
    """Everything behind the header, in the order of the file."""
    width, hidden, layers, heads, key_heads, vocabulary, context = (header[name] for name in NUMBERS)
    keys = width // heads * key_heads
    head: dict[str, tuple[int, ...]] = {} if tied else {"head": (vocabulary, width)}
    return {
        "token_embedding": (vocabulary, width),
        "attention_norm": (layers, width),
        "wq": (layers, width, width),
        "wk": (layers, keys, width),
        "wv": (layers, keys, width),
        "wo": (layers, width, width),
        "feedforward_norm": (layers, width),
        "w1": (layers, hidden, width),
        "w2": (layers, width, hidden),
        "w3": (layers, hidden, width),
        "final_norm": (width,),
        "cosines": (context, width // heads // 2),
        "sines": (context, width // heads // 2),
        **head,
    }


def read_llama2c_tokenizer(content: Content, vocabulary: int, where: str) -> Tokenizer:
    """The tokenizer in a tokenizer.bin; it puts a space before the text, and takes one away when decoding."""
    stored = _read_pieces(content, vocabulary, where)
    pieces: dict[str, float] = {}
    # By id, not as stored: older files spell byte 0x80 as the letter U+0080, which may be a piece as well.
    ids = {word: i for i, word in enumerate(FIXED)}
    for i, (spelling, score) in enumerate(stored):
        if i < FIRST_PIECE:
            _check_fixed(i, spelling, where)
            continue
        try:
            piece = spelling.decode("utf-8")
        except UnicodeDecodeError:
            raise UserError(f"{where}: token {i} of {vocabulary} is not UTF-8") from None
        if piece in ids:
            raise UserError(f"{where}: tokens {ids[piece]} and {i} are the same ({piece!r})")
        ids[piece], pieces[piece] = i, score

    return build(list(pieces), _merges(pieces))


def _read_pieces(content: Content, vocabulary: int, where: str) -> list[tuple[bytes, float]]:
    """Spelling and score of each token: int32 longest, then float32 score, int32 length and bytes of each."""
    if vocabulary < FIRST_PIECE:
        raise UserError(f"{where}: {vocabulary} tokens, but marks and bytes alone are {FIRST_PIECE}")
    # Each token has at least its two numbers and a byte.
    if len(content) < 4 + 9 * vocabulary:
        raise UserError(
            f"{where}: a tokenizer of {len(content):,} bytes, but {vocabulary:,} tokens take {4 + 9 * vocabulary:,}"
        )
    (longest,) = struct.unpack_from("<i", content)
    if not 1 <= longest <= LONGEST_PIECE:
        raise UserError(f"{where}: its longest token is said to have {longest} bytes, but 1 to {LONGEST_PIECE} can be")
    stored, offset = [], 4
    for i in range(vocabulary):
        if offset + 8 > len(content):
            raise UserError(f"{where}: the tokenizer ends after {i:,} of {vocabulary:,} tokens")
        score, length = struct.unpack_from("<fi", content, offset)
        offset += 8
        if not 1 <= length <= longest:
            raise UserError(f"{where}: token {i} is said to have {length} bytes, but 1 to {longest} can be")
        if offset + length > len(content):
            raise UserError(f"{where}: the tokenizer ends within token {i:,} of {vocabulary:,}")
        if not math.isfinite(score):
            raise UserError(f"{where}: token {i} of {vocabulary} has the score {score}, which cannot be ranked")
        stored.append((content[offset : offset + length], score))
        offset += length
    if offset < len(content):
        raise UserError(
            f"{where}: a tokenizer of {len(content):,} bytes, but its {vocabulary:,} tokens end at {offset:,}"
        )
    return stored


def _check_fixed(i: int, spelling: bytes, where: str) -> None:
    """Complain unless one of the first ids is the mark or the byte it is in every vocabulary."""
    if i < len(MARKS):
        # Stored as "\n<s>\n" so that llama2.c prints a new story on a new line.
        expected, allowed = MARKS[i], {MARKS[i], f"\n{MARKS[i]}\n"}
    else:
        byte = i - len(MARKS)
        expected, allowed = BYTES[byte], {BYTES[byte], chr(byte)}
    if spelling not in {word.encode() for word in allowed}:
        raise UserError(f"{where}: token {i} is {spelling!r}, but it must be {expected}")


def _merges(pieces: dict[str, float]) -> list[tuple[str, str]]:
    """Every way to join two pieces into a third, the best first.

    SentencePiece joins the neighbours whose union has the highest score, the leftmost of equals; here every pair has a
    rank of its own. Of equal scores the longer left part goes first, which is the leftmost wherever two such
    pairs overlap in text: a run of spaces, all of whose lengths have one score, grows from its left end.
    """
    ranked = [
        (-score, -cut, piece[:cut], piece[cut:])
        for piece, score in pieces.items()
        for cut in range(1, len(piece))
        if piece[:cut] in pieces and piece[cut:] in pieces
    ]
    ranked.sort(key=lambda merge: merge[:2])
    return [(left, right) for _, _, left, right in ranked]
