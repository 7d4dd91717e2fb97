"""CTranslate2 on folders that `bench.readers.same` wrote from Saccade's weights."""

from pathlib import Path

import ctranslate2
import numpy as np

from bench.measuring import read_arguments
from bench.readers.contract import SIZES, Read, measure_reader, padded_ways
from saccade.runtime.contract import Booleans, Floats, Ids


def open_encoder(folder: Path, compute: str, threads: int) -> Read:
    path = str(folder / f"ctranslate2-{compute}")
    model = ctranslate2.Encoder(path, device="cpu", compute_type=compute, inter_threads=1, intra_threads=threads)

    def read(tokens_BT: Ids, mask_BT: Booleans | None) -> Floats:
        rows, length = tokens_BT.shape
        lengths_B = np.full(rows, length, dtype=np.int32) if mask_BT is None else mask_BT.sum(axis=1, dtype=np.int32)
        views = [ctranslate2.StorageView.from_array(array) for array in (tokens_BT.astype(np.int32), lengths_B)]
        return np.array(model.forward_batch(*views).last_hidden_state)

    return read


def main() -> None:
    given = read_arguments(SIZES, "folder", "compute")
    read = open_encoder(Path(given.folder), given.compute, given.threads)
    title = f"CTranslate2 {ctranslate2.__version__}, {given.compute}, threads: {given.threads}"
    measure_reader(title, read, padded_ways(read), given.calls)


if __name__ == "__main__":
    main()
