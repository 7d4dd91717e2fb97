"""A recurrent decoder that acts: what it is told stays, what it sees is another picture at every step."""

import torch
from torch import Tensor

from saccade.models.contract import NamedMemories
from saccade.models.encdec import EncoderDecoder
from saccade.models.rnn import RecurrentDecoder
from saccade.sites import COMMAND, WORLD


def acted_features(
    model: EncoderDecoder,
    command: tuple[Tensor, Tensor | None],
    pictures_NHWC: Tensor,
    real_BT: Tensor,
    target_BT: Tensor,
) -> Tensor:
    """[B, T, E]: what the output layer reads, teacher forced. `pictures_NHWC` are what is seen at the real steps, row
    by row: all of them are read at once, then the decoder looks at those of one step after the other."""
    decoder = model.decoder
    assert isinstance(decoder, RecurrentDecoder)
    told, worlds = model.encoders[COMMAND](*command), model.encoders[WORLD](pictures_NHWC)
    # Past its end a row goes on looking at its last picture; nobody reads what follows from it.
    last_B1 = real_BT.sum(dim=1, keepdim=True).cumsum(dim=0) - 1
    place_BT = torch.minimum(real_BT.flatten().cumsum(0).view_as(real_BT) - 1, last_B1)
    state = decoder.start(NamedMemories({COMMAND: told, WORLD: worlds.rows(place_BT[:, 0])}))
    features = []
    for t in range(target_BT.shape[1]):
        if t:
            state = decoder.see({WORLD: worlds.rows(place_BT[:, t])}, state)
        features_B1E, state = decoder.write(target_BT[:, t : t + 1], state)
        features.append(features_B1E)
    return torch.cat(features, dim=1)
