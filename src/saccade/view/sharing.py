"""Runs in one record, small enough for a file that is sent to somebody: what does not fit is thinned out, and said."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from saccade.view.recording import to_bytes, top_of
from saccade.view.runs import ViewedRun

Values = dict[str, Any]
WHOLE = 6 * 2**20
"""Bytes of weights that are kept whole."""
MOST = 13 * 2**20
"""Bytes of all weights; as text they are a third longer."""


def shared(runs: Sequence[ViewedRun]) -> tuple[bytes, str]:
    """The record of several runs, each array under `runN/`; and in words what was left out."""
    arrays: dict[str, np.ndarray] = {}
    records: list[Values] = []
    thinned = dropped = used = 0
    for number, run in enumerate(runs):
        looks = []
        for place, (look, planes_PTS) in enumerate(zip(run.record["looks"], run.planes, strict=True)):
            stored = "full"
            if used + planes_PTS.nbytes > WHOLE:
                places, values = top_of(planes_PTS)
                stored = "top" if used + places.nbytes + values.nbytes <= MOST else "thumb"
            if stored == "full":
                arrays[f"run{number}/w{place}"] = planes_PTS
                used += planes_PTS.nbytes
            elif stored == "top":
                arrays[f"run{number}/i{place}"], arrays[f"run{number}/v{place}"] = places, values
                used += places.nbytes + values.nbytes
                thinned += 1
            else:
                dropped += 1
            looks.append(look | {"stored": stored})
        small = {name: array for name, array in run.arrays.items() if not name.startswith("w")}
        arrays |= {f"run{number}/{name}": array for name, array in small.items()}
        records.append(run.record | {"looks": looks})
    said = []
    if thinned:
        said.append(f"of {thinned} layers only the 16 largest weights of each row are kept")
    if dropped:
        said.append(f"of {dropped} layers only the small pictures are kept")
    left_out = "; ".join(said)
    return to_bytes({"runs": records, "left_out": left_out}, arrays), left_out
