"""Give every engine the same random weights, and show that they arrived: all must find the same states.

`python -m bench.readers.same SIZE --folder FOLDER --peers NAME,…` writes the models and prints how far each engine
agrees with the oracle: Hugging Face in float32, or, where it is not installed, exact Saccade. Not timed.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from bench.measuring import read_arguments
from bench.readers import saccade as own
from bench.readers.contract import MARKS, SIZES, VOCABULARY, Read, draw_lengths, draw_texts, read_padded
from bench.stored import draw_weights, write_random
from saccade.arch.bert import BertConfig
from saccade.models.bert import Bert
from saccade.runtime.contract import Floats, How

TEXTS = 8
HOWS: tuple[How, ...] = ("exact", "int16", "int8")
COMPUTES = ("float32", "int8")


def open_all(
    model: Bert, config: BertConfig, folder: Path, peers: list[str], threads: int
) -> Iterator[tuple[str, Read]]:
    """Every engine in every kind of numbers, one after the other; the oracle first."""
    if "transformers" in peers:
        from bench.hugging_face import as_bert
        from bench.readers import hugging_face

        theirs = as_bert(model)
        theirs.save_pretrained(folder / "transformers")
        yield "Hugging Face", hugging_face.open_encoder(folder)
        if "onnxruntime" in peers:
            from bench.readers import onnx

            onnx.export(theirs, folder)
            for compute in COMPUTES:
                yield f"onnxruntime {compute}", onnx.open_encoder(folder, compute, threads)
    for how in HOWS:
        yield f"saccade {how}", own.open_encoder(folder, config, how)[1]
    if "ctranslate2" in peers:
        from bench.convert import write_encoder
        from bench.readers import ctranslate2

        words = [f"w{number}" for number in range(VOCABULARY)]
        for compute in COMPUTES:
            write_encoder(model, words, MARKS, folder / f"ctranslate2-{compute}", compute)
            yield f"CTranslate2 {compute}", ctranslate2.open_encoder(folder, compute, threads)


def least_cosine(one_ND: Floats, other_ND: Floats) -> float:
    """Of any token's two states."""
    lengths = np.linalg.norm(one_ND, axis=-1) * np.linalg.norm(other_ND, axis=-1)
    return float(((one_ND * other_ND).sum(axis=-1) / lengths).min())


def main() -> None:
    given = read_arguments(SIZES, "folder", "peers")
    torch.set_num_threads(given.threads)
    folder, config = Path(given.folder), SIZES[given.size]
    model = Bert(config, VOCABULARY).eval()
    draw_weights(model)
    write_random(folder / "saccade", config, model)
    texts = draw_texts(draw_lengths(TEXTS))
    oracle, found = None, {}
    for name, read in open_all(model, config, folder, given.peers.split(","), given.threads):
        states_ND = np.concatenate(read_padded(read, texts))
        if oracle is None:
            oracle = states_ND
            continue
        difference = float(np.abs(states_ND - oracle).max())
        found[name] = {"difference": difference, "cosine": least_cosine(states_ND, oracle)}
    print(json.dumps({"tokens": sum(map(len, texts)), "engines": found}))


if __name__ == "__main__":
    main()
