"""An agent that learns on: its weights and words, and the sizes and actions that must stay the same."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.errors import UserError
from saccade.folder import ModelFolder, read_folder
from saccade.models.encdec import EncoderDecoder
from saccade.pipelines.agent import AgentSettings
from saccade.pipelines.load import model_path
from saccade.tokens.vocabulary import read_vocabulary


@dataclass(frozen=True)
class Learner:
    """A model folder to go on from."""

    folder: ModelFolder

    @classmethod
    def read(cls, name: str) -> "Learner":
        folder = read_folder(model_path(name))
        if folder.config.task != "acting":
            raise UserError(f"learner = {name!r}: a model for {folder.config.task}, which does not act")
        return cls(folder)

    def insist(self, words: Sequence[str], actions: Sequence[str]) -> list[str]:
        """Its words; those of the demonstrations must be among them, and it must do the same."""
        settings = self.folder.settings(AgentSettings)
        if unknown := [word for word in words if word not in settings.words]:
            raise UserError(f"{self.folder.path}: does not know {', '.join(unknown[:5])}, which commands here have")
        if settings.actions != list(actions):
            raise UserError(f"{self.folder.path}: its actions are {', '.join(settings.actions)}, not these worlds'")
        return list(settings.words)

    def fill(self, model: nn.Module) -> None:
        """Copy its weights into a model of the same sizes."""
        assert isinstance(model, EncoderDecoder)
        path = self.folder.path / "tokenizer.json"
        vocabulary = read_vocabulary(self.folder.tokenizer, path, marks=self.folder.marks)
        config = EncoderDecoderConfig.read(self.folder.config.model, where=self.folder.where)
        if config != model.config:
            raise UserError(f"{self.folder.path}: its sizes are not those of the recipe, so it cannot go on from it")
        weights = self.folder.tensors(config.weights(len(vocabulary)))
        with torch.no_grad():
            for name, weight in model.named_parameters():
                weight.copy_(torch.from_numpy(np.array(weights[name], dtype=np.float32)))
