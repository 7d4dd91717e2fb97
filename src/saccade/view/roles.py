"""What each head does in one run, as far as it is clear: looks at the place before, at the same word, at marks."""

import numpy as np

from saccade.explaining.heads import HeadStudy, role_places, share_of
from saccade.explaining.places import AttentionLayer
from saccade.look.head_grid import entropy_share
from saccade.look.record import LayerLooks

MOST_FIELDS = 300_000
"""Of a head: larger ones take too long to sort while somebody waits."""


def roles_of(looks: LayerLooks) -> list[str]:
    """The role of every head; none where nothing is known of it."""
    heads, rows, columns = looks.weights_NTS.shape
    if rows * columns > MOST_FIELDS or not rows or looks.name == "rollout":
        return [""] * heads
    places = role_places(looks)
    layer = AttentionLayer(looks.name, looks.kind, looks.memory, 1, heads)
    found = []
    for head in range(heads):
        weights_TS = looks.weights_NTS[head].astype(np.float64)
        study = HeadStudy(layer, head + 1, entropies=[entropy_share(weights_TS)])
        for role, places_TS in places.items():
            share = share_of(weights_TS, places_TS, causal=looks.kind == "decoder")
            if share is not None:
                study.shares[role] = [share]
        found.append("" if study.role == "–" else study.role)
    return found
