"""Give every engine the same random weights, and show that they arrived: all must say the same of the same text.

`python -m bench.writers.same SHAPE --folder FOLDER --peers NAME,…` writes the models and prints how far each peer
agrees with exact Saccade. Not timed.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.measuring import read_arguments
from bench.stored import draw_weights, write_random
from bench.writers import saccade as own
from bench.writers.contract import MARKS, SHAPES, Prompts, Write, draw_prompts
from saccade.models.gpt import LanguageModel, build_gpt
from saccade.runtime.contract import Floats

BATCH, LENGTH, COUNT = 4, 24, 16


@dataclass(frozen=True)
class Opened:
    """A peer's model, ready to be asked."""

    write: Write
    judge: Callable[[Prompts], Floats]
    """Texts -> log-probability of every token but the first [B, T-1]."""


def open_ctranslate2(model: LanguageModel, folder: Path, threads: int) -> Iterator[tuple[str, Opened]]:
    from bench.convert import write_language
    from bench.writers import ctranslate2 as peer

    vocabulary = model.decoder.head.out_features
    words = peer.words_of(vocabulary)
    for compute in ("float32", "int8"):
        write_language(model, words, MARKS, folder / f"ctranslate2-{compute}", compute)
        generator = peer.open_generator(folder, compute, threads)

        def judge(texts: Prompts, generator: Any = generator) -> Floats:
            scored = generator.score_batch([[words[i] for i in text] for text in texts])
            return np.array([one.log_probs for one in scored])

        yield f"CTranslate2 {compute}", Opened(peer.writer(generator, vocabulary), judge)


def open_transformers(model: LanguageModel, folder: Path, threads: int) -> Iterator[tuple[str, Opened]]:
    from bench.hugging_face import as_language_model
    from bench.writers import generate as peer

    torch.set_num_threads(threads)
    as_language_model(model, MARKS.end).save_pretrained(folder / "transformers")
    opened = peer.open_model(folder)

    def judge(texts: Prompts) -> Floats:
        with torch.inference_mode():
            return likelihoods(opened(torch.tensor(texts)).logits.numpy(), texts)

    yield "Hugging Face float32", Opened(peer.writer(opened), judge)


PEERS = {"ctranslate2": open_ctranslate2, "transformers": open_transformers}


def likelihoods(logits_BTV: Floats, texts: Prompts) -> Floats:
    """Log-probability of every token but the first."""
    scores = torch.from_numpy(logits_BTV)[:, :-1].log_softmax(-1)
    found: Floats = scores.gather(2, torch.tensor(texts)[:, 1:, None])[:, :, 0].numpy()
    return found


def main() -> None:
    given = read_arguments(SHAPES, "folder", "peers")
    folder, shape = Path(given.folder), SHAPES[given.size]
    model = build_gpt(shape.config, shape.vocabulary).eval()
    draw_weights(model)
    write_random(folder / "saccade", shape.config, model)

    runtime = own.open_runtime(folder, shape, "exact")
    prompts = draw_prompts(shape, BATCH, LENGTH)
    ours = own.writer(runtime)(prompts, COUNT)
    texts = [prompt + written for prompt, written in zip(prompts, ours, strict=True)]
    expected = likelihoods(runtime.logits(np.array(texts)), texts)
    found = {}
    for peer in filter(None, given.peers.split(",")):
        for name, opened in PEERS[peer](model, folder, given.threads):
            same = np.array(opened.write(prompts, COUNT)) == np.array(ours)
            difference = float(np.abs(opened.judge(texts) - expected).max())
            found[name] = {"agreement": float(same.mean()), "difference": difference}
    print(json.dumps({"variety": len({token for text in ours for token in text}), "peers": found}))


if __name__ == "__main__":
    main()
