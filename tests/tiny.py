"""A tiny model folder made in a moment, and the command line asked without a new process."""

import io
import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.gpt import GptConfig
from saccade.cli.main import main
from saccade.folder import Storage, write_card
from saccade.models.answering import language_runtime
from saccade.models.encdec import build_encoder_decoder
from saccade.models.gpt import LanguageModel, build_gpt
from saccade.pipelines.completer import Completer
from saccade.tokens.marks import SPECIALS
from saccade.tokens.vocabulary import TokensConfig, Vocabulary, train_vocabulary
from saccade.weights import write_folder

SENTENCES = ["one two three four", "two cats see one dog", "four dogs see three cats", "one cat sees three dogs"]
STACK = {"layers": 2, "width": 16, "heads": 2, "feedforward": 32}
CONTEXT = 24
LATER = {
    "positions": {"kind": "rotary"},
    "norm": "rms",
    "gated": True,
    "activation": "silu",
    "key_heads": 2,
    "windows": (0, 3),
    "bias": False,
    "tie": False,
}
GPTS: dict[str, dict[str, Any]] = {
    "gpt-2": {},
    "relu": {"activation": "relu"},
    "rotary": {"positions": {"kind": "rotary"}},
    "rotary halves": {"positions": {"kind": "rotary", "layout": "halves", "base": 500.0}},
    "sinusoidal": {"positions": {"kind": "sinusoidal"}},
    "relative": {"positions": {"kind": "relative"}},
    "no positions": {"positions": {"kind": "none"}},
    "rms": {"norm": "rms"},
    "gated": {"gated": True, "activation": "silu"},
    "one key head": {"key_heads": 1},
    "two key heads": {"key_heads": 2},
    "windows": {"windows": (0, 3)},
    "a window of one": {"windows": (1,)},
    "no bias": {"bias": False},
    "untied": {"tie": False},
    "later turns": LATER,
}
"""GPT-2's parts, each of them turned into a later one, and all together."""


@dataclass(frozen=True)
class Said:
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines on stdout; only \\n ends one."""
        return self.out.removesuffix("\n").split("\n") if self.out else []


CUT_OFF = re.compile(r"saccade: line \d+: the translation of .* was cut off after \d+ tokens\n")


def ask(*arguments: str | Path, stdin: bytes = b"", cut_off: bool = False) -> Said:
    """`saccade …` in this process: torch is imported already, so it costs no start. An untrained translator hardly ever
    ends a sentence by itself: that it is cut off is left out unless `cut_off` is asked for."""
    out, err = io.StringIO(), io.StringIO()
    code = None
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin))),
    ):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int), f"a command ends with an exit code, not with {code!r}"
    return Said(code, out.getvalue(), err.getvalue() if cut_off else CUT_OFF.sub("", err.getvalue()))


def gpt_config(name: str, **options: Any) -> GptConfig:
    sizes = {"layers": 3, "width": 16, "heads": 4, "feedforward": 24, "context": CONTEXT}
    return GptConfig.read(sizes | GPTS[name] | options, where=name)


def tiny_gpt(name: str = "gpt-2", *, vocabulary: int = 20, seed: int = 0, **options: Any) -> LanguageModel:
    """An untrained language model, in eval mode, whose every weight matters."""
    torch.manual_seed(seed)
    model = build_gpt(gpt_config(name, **options), vocabulary)
    with torch.no_grad():
        # Fresh weights are so small, biases so zero and norms so one that a model without them would pass every test.
        for weight in model.parameters():
            weight.mul_(12 if weight.ndim == 2 else 1).add_(0.1 * torch.randn_like(weight))
    return model.eval()


def tiny_vocabulary(kind: str = "bpe") -> Vocabulary:
    """Of the sentences above and some letters of more than one byte, for a language model."""
    texts = [*SENTENCES, "\n", "für 5 € ☃"]
    return train_vocabulary(TokensConfig.model_validate({"kind": kind, "vocabulary": 320}), texts, spaced=False)


def write_tiny_language_model(
    path: Path, *, kind: str = "bpe", marked: bool = True, name: str = "gpt-2", seed: int = 0
) -> Path:
    """An untrained language model that writes pieces of anything; its context is of 24 tokens."""
    vocabulary, config = tiny_vocabulary(kind), gpt_config(name)
    model = tiny_gpt(name, vocabulary=len(vocabulary), seed=seed)
    table = {"task": "language", "name": "tiny", "model": config.table(), "marked": marked}
    write_folder(path, table, model, vocabulary.tokenizer.to_str(), storage="float32")
    write_card(path, "# tiny\n\nA tiny model for tests.\n")
    return path


def write_tiny_model(path: Path, *, storage: Storage = "float32", seed: int = 0) -> Path:
    """An untrained translation model that writes pieces of the sentences above."""
    vocabulary = train_vocabulary(TokensConfig(vocabulary=320), SENTENCES)
    config = EncoderDecoderConfig.read({"encoder": STACK, "decoder": STACK}, where="tiny model")
    torch.manual_seed(seed)
    model = build_encoder_decoder(config, len(vocabulary))
    with torch.no_grad():
        # Nothing points at a single byte, so that no text holds half a character or a line break.
        model.decoder.embed.tokens.weight[len(SPECIALS) : len(SPECIALS) + 256] = 0
    table = {
        "task": "translation",
        "name": "tiny",
        "model": config.table(),
        "search": {"beam": 2, "alpha": 0.6, "factor": 1.0, "extra": 3},
        "data": {"train": ["train.tsv"], "valid": ["valid.tsv"]},
        "lowercase": False,
        "layer": 1,
    }
    write_folder(path, table, model, vocabulary.tokenizer.to_str(), storage=storage)
    write_card(path, "# tiny\n\nA tiny model for tests.\n")
    return path


def write_tiny_captioner(path: Path, *, seed: int = 0) -> Path:
    """An untrained model that says something about pictures, while it looks at 4 × 4 fields of them."""
    vocabulary = train_vocabulary(TokensConfig(vocabulary=320), SENTENCES)
    front = {"kind": "patches", "height": 16, "width": 16, "channels": 3, "patch": 4}
    config = EncoderDecoderConfig.read({"encoder": STACK | {"front": front}, "decoder": STACK}, where="tiny captioner")
    torch.manual_seed(seed)
    model = build_encoder_decoder(config, len(vocabulary))
    with torch.no_grad():
        model.decoder.embed.tokens.weight[len(SPECIALS) : len(SPECIALS) + 256] = 0
    table = {"task": "captioning", "name": "tiny", "model": config.table(), "search": {"beam": 2, "extra": 6}}
    write_folder(path, table, model, vocabulary.tokenizer.to_str(), storage="float32")
    write_card(path, "# tiny\n\nA tiny model for tests.\n")
    return path


def tiny_completer(kind: str = "bpe", *, marked: bool = True, name: str = "gpt-2", **options: Any) -> Completer:
    vocabulary = tiny_vocabulary(kind)
    model = tiny_gpt(name, vocabulary=len(vocabulary), **options)
    return Completer(language_runtime(model, "exact"), vocabulary, marked=marked)


def answered(said: Said) -> str:
    assert said.code == 0, said
    assert said.err == "", said
    return said.out


def insist_one_line(said: Said, code: int, fragments: Sequence[str]) -> None:
    assert said.code == code, said
    assert said.out == "", said.out
    assert said.err.startswith("saccade: "), said.err
    assert said.err.count("\n") == 1, said.err
    for fragment in fragments:
        assert fragment in said.err, said.err
