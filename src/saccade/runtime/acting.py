"""A recurrent decoder that acts: what it is told stays, what it sees is another picture at every step."""

from dataclasses import dataclass

import numpy as np

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.recurrent import RecurrentDecoderConfig
from saccade.runtime.contract import Array, ArrayMemories, Booleans, Floats, Ids
from saccade.runtime.open import SequenceRuntime
from saccade.runtime.recurrent import RecurrentWriter
from saccade.runtime.recurrent_state import RecurrentRows
from saccade.sites import COMMAND, WORLD


def complaint_about(config: EncoderDecoderConfig) -> str | None:
    """Why a model cannot act, if it cannot."""
    if set(config.readers) != {COMMAND, WORLD}:
        return f"what acts reads a {COMMAND} and a {WORLD}, not {', '.join(config.readers)}"
    if not isinstance(config.decoder, RecurrentDecoderConfig) or not config.decoder.attends:
        return "what acts is a recurrent decoder with attention: decoder.kind = 'recurrent'"
    if config.readers[COMMAND].front_end.kind != "tokens" or config.readers[WORLD].front_end.kind == "tokens":
        return f"the {COMMAND} is text, and the {WORLD} is a picture"
    return None


@dataclass(frozen=True)
class Acting:
    """A model on its way: rows are what acts side by side, each in a world of its own."""

    runtime: SequenceRuntime

    def start(self, tokens_BS: Ids, mask_BS: Booleans | None, pictures_BHWC: Array) -> RecurrentRows:
        """Nothing was done yet."""
        told = self.runtime.encoders[COMMAND](tokens_BS, mask_BS)
        seen = self.runtime.encoders[WORLD](as_floats(pictures_BHWC))
        return self._decoder.start(ArrayMemories({COMMAND: told, WORLD: seen}))

    def see(self, pictures_BHWC: Array, state: RecurrentRows) -> RecurrentRows:
        """Another picture for every row."""
        return self._decoder.see({WORLD: self.runtime.encoders[WORLD](as_floats(pictures_BHWC))}, state)

    def step(self, actions_B: Ids, state: RecurrentRows) -> tuple[Floats, RecurrentRows]:
        """What was done last, or the start mark; logits [B, V] of what is to be done now."""
        return self._decoder.step(actions_B, state)

    @property
    def _decoder(self) -> RecurrentWriter:
        decoder = self.runtime.decoder
        assert isinstance(decoder, RecurrentWriter)
        return decoder


def as_floats(pictures: Array) -> Floats:
    """uint8 -> from 0 to 1."""
    return pictures.astype(np.float32) / np.float32(255)
