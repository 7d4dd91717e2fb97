"""What stands on an encoder, in plain NumPy: guessed words, classes of texts, tags of words."""

import numpy as np

from saccade.arch.heads import ClassHead, EncoderModel, WordsHead
from saccade.runtime.contract import ArrayMemory, Booleans, Floats
from saccade.runtime.layers import Weights, gelu, linear, normalise


def head_outputs(config: EncoderModel, weights: Weights, memory: ArrayMemory, chosen_BT: Booleans | None) -> Floats:
    """Logits of the chosen positions' words or tags [N, V], or of the rows' classes [B, C]."""
    states_BTD = memory.states_MSD
    if isinstance(config.head, ClassHead):
        return linear(weights, "head", pooled(config.head, weights, memory))
    chosen_ND: Floats = states_BTD[chosen_BT] if chosen_BT is not None else states_BTD.reshape(-1, states_BTD.shape[-1])
    if not isinstance(config.head, WordsHead):
        return linear(weights, "head", chosen_ND)
    guessed_ND = gelu(linear(weights, "words.dense", chosen_ND))
    epsilon = getattr(config.encoder, "epsilon", 1e-12)
    return linear(weights, "words.head", normalise(weights, "words.norm", guessed_ND, epsilon))


def pooled(head: ClassHead, weights: Weights, memory: ArrayMemory) -> Floats:
    """A text or a picture as one vector; the first position has looked at all others."""
    if head.pooling == "mean":
        return memory.summary_MF
    first_BD: Floats = memory.states_MSD[:, 0]
    return first_BD if head.pooling == "first" else np.tanh(linear(weights, "pooler.dense", first_BD))
