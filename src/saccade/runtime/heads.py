"""What stands on an encoder, in plain NumPy: guessed words, classes of texts, tags of words."""

import numpy as np

from saccade.arch.heads import ClassHead, EncoderModel, WordsHead
from saccade.runtime.contract import Booleans, Floats
from saccade.runtime.layers import Weights, gelu, linear, normalise


def head_outputs(config: EncoderModel, weights: Weights, states_BTD: Floats, chosen_BT: Booleans | None) -> Floats:
    """Logits of the chosen positions' words or tags [N, V], or of the rows' classes [B, C]."""
    if isinstance(config.head, ClassHead):
        return linear(weights, "head", pooled(weights, states_BTD))
    chosen_ND: Floats = states_BTD[chosen_BT] if chosen_BT is not None else states_BTD.reshape(-1, states_BTD.shape[-1])
    if not isinstance(config.head, WordsHead):
        return linear(weights, "head", chosen_ND)
    guessed_ND = gelu(linear(weights, "words.dense", chosen_ND))
    epsilon = getattr(config.encoder, "epsilon", 1e-12)
    return linear(weights, "words.head", normalise(weights, "words.norm", guessed_ND, epsilon))


def pooled(weights: Weights, states_BTD: Floats) -> Floats:
    """A text as one vector: a layer on its first token, which has looked at all others (Devlin et al. 2018)."""
    vector: Floats = np.tanh(linear(weights, "pooler.dense", states_BTD[:, 0]))
    return vector
