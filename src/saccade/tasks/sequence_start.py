"""What a training on pairs of texts starts from: another encoder and decoder, with its vocabulary or without."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.errors import UserError
from saccade.folder import ModelFolder, read_folder
from saccade.pipelines.load import model_path
from saccade.tokens.vocabulary import Vocabulary, read_vocabulary


@dataclass(frozen=True)
class SequenceStart:
    """A model folder to start from."""

    folder: ModelFolder
    vocabulary: Vocabulary

    @classmethod
    def read(cls, init: str) -> "SequenceStart":
        folder = read_folder(model_path(init))
        if not {"encoder", "decoder"} <= folder.config.model.keys():
            raise UserError(f"{folder.path}: init needs a model that reads and writes text, as en-es does")
        source_bytes = bool(folder.config.settings.get("source_bytes", False))
        path = folder.path / "tokenizer.json"
        return cls(folder, read_vocabulary(folder.tokenizer, path, source_bytes=source_bytes, marks=folder.marks))

    def config(self, dropout: float | None) -> EncoderDecoderConfig:
        """Its sizes; `dropout` replaces that of its stacks."""
        found = EncoderDecoderConfig.read(self.folder.config.model, where=self.folder.where)
        if dropout is None:
            return found
        stacks: dict[str, Any] = {
            side: stack.model_copy(update={"dropout": dropout})
            for side in ("encoder", "decoder")
            if (stack := getattr(found, side)) is not None
        }
        return found.model_copy(update=stacks)

    def fill(self, model: nn.Module, vocabulary: Vocabulary) -> int:
        """Copy its weights into a model of its sizes. Where the vocabulary is another one, the vectors of pieces that
        both have are copied, and those of the others stay as they are. Returns how many pieces both have."""
        mine, theirs = vocabulary.tokenizer.get_vocab(), self.vocabulary.tokenizer.get_vocab()
        both = sorted(mine.keys() & theirs.keys())
        to, back = ([ids[piece] for piece in both] for ids in (mine, theirs))
        config = EncoderDecoderConfig.read(self.folder.config.model, where=self.folder.where)
        weights = self.folder.tensors(config.weights(len(theirs)))
        with torch.no_grad():
            for name, weight in dict(model.named_parameters()).items():
                found = torch.from_numpy(np.array(weights[name], dtype=np.float32))
                if mine != theirs and (len(weight), len(found)) == (len(mine), len(theirs)):
                    weight[to] = found[back]
                else:
                    weight.copy_(found)
        return len(both)


def write_vocabulary(start: SequenceStart, out: Path) -> None:
    """The vocabulary of the start becomes that of the training."""
    (out / "tokenizer.json").write_text(start.folder.tokenizer, encoding="utf-8")
