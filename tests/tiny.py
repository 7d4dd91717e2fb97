"""A tiny model folder made in a moment, and the command line asked without a new process."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import torch

from saccade.cli.main import main
from saccade.folder import Storage, write_card, write_folder
from saccade.models.encdec import EncoderDecoderConfig, build_encoder_decoder
from saccade.tokens.marks import SPECIALS
from saccade.tokens.vocabulary import TokensConfig, train_vocabulary

SENTENCES = ["one two three four", "two cats see one dog", "four dogs see three cats", "one cat sees three dogs"]
STACK = {"layers": 2, "width": 16, "heads": 2, "hidden": 32}


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


def ask(*arguments: str | Path, stdin: bytes = b"") -> Said:
    """`saccade …` in this process: torch is imported already, so it costs no start."""
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
    return Said(code, out.getvalue(), err.getvalue())


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
