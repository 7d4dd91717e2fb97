"""What is translated, by what size of model, and how a translator is timed: the same for every engine."""

import argparse
import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch

from saccade.arch.encoder_decoder import EncoderDecoderConfig, StackConfig
from saccade.arch.positions import SinusoidalConfig
from saccade.models.encdec import EncoderDecoder, build_encoder_decoder
from saccade.tokens.marks import Marks


@dataclass(frozen=True)
class Size:
    layers: int
    """In the encoder, and as many in the decoder."""
    width: int
    heads: int
    feedforward: int
    vocabulary: int

    def __str__(self) -> str:
        return (
            f"{self.layers}+{self.layers} layers, width {self.width}, {self.heads} heads, feed-forward "
            f"{self.feedforward}, vocabulary {self.vocabulary:,}"
        )


SIZES = {
    "base": Size(layers=6, width=512, heads=8, feedforward=2048, vocabulary=32_000),
    "tiny": Size(layers=4, width=256, heads=4, feedforward=1024, vocabulary=8_000),
}
MARKS = Marks()
"""Random weights have no vocabulary: its marks are those of any that is trained here."""
SOURCE, TARGET = 20, 24
"""Tokens read and written in every sentence. No engine may write the end mark, so that all do the same work."""
SEED = 1
WARMUP = 2
LEAST_SECONDS = 0.5
"""Short calls are repeated for at least so long."""

Sentences = list[list[int]]
Translate = Callable[[Sentences, int], Sentences]
"""Sources and beam size -> targets; all as token ids, without marks."""


@dataclass(frozen=True)
class Cell:
    """One kind of call."""

    batch: int
    beam: int

    @property
    def search(self) -> str:
        return "greedy" if self.beam == 1 else f"beam {self.beam}"

    def __str__(self) -> str:
        return f"batch {self.batch}, {self.search}"


CELLS = [Cell(batch, beam) for batch in (1, 32) for beam in (1, 5)]


def build_model(size: Size) -> EncoderDecoder:
    """Random weights, the same in every process.

    The matrices are not tied: a tied model with random weights repeats its last token for ever, and two engines
    would then agree without having computed the same.
    """
    torch.manual_seed(SEED)
    stack = StackConfig(
        layers=size.layers,
        width=size.width,
        heads=size.heads,
        feedforward=size.feedforward,
        positions=SinusoidalConfig(),
    )
    config = EncoderDecoderConfig(encoder=stack, decoder=stack, tie="none")
    return build_encoder_decoder(config, size.vocabulary).eval()


def draw_sources(size: Size, batch: int) -> Sentences:
    draw, first = random.Random(SEED), max(MARKS.special) + 1
    return [[draw.randrange(first, size.vocabulary) for _ in range(SOURCE)] for _ in range(batch)]


def read_arguments(*own: str) -> argparse.Namespace:
    """The size, how many calls, and what an engine wants to know besides."""
    parser = argparse.ArgumentParser()
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("--calls", type=int, default=5)
    for name in own:
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    given.threads = int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads()))
    torch.set_num_threads(given.threads)
    return given


def time_cells(title: str, size: Size, translate: Translate, calls: int) -> None:
    """Time every kind of call, check that each did its work, and print the medians in milliseconds."""
    cells = {}
    for cell in CELLS:
        sources = draw_sources(size, cell.batch)
        for _ in range(WARMUP):
            written = translate(sources, cell.beam)
        if any(len(text) != TARGET or MARKS.end in text for text in written):
            raise SystemExit(f"{title}: wrote {sorted({len(text) for text in written})} tokens, not {TARGET} each")
        cells[str(cell)] = 1000 * median(_time_calls(translate, sources, cell.beam, calls))
    print(json.dumps({"engine": title, "figures": cells}))


def _time_calls(translate: Translate, sources: Sentences, beam: int, calls: int) -> list[float]:
    times: list[float] = []
    while len(times) < calls or sum(times) < LEAST_SECONDS:
        began = time.perf_counter()
        translate(sources, beam)
        times.append(time.perf_counter() - began)
    return times
