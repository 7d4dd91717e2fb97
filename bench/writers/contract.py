"""What language models continue, in which shapes, and how they are timed: the same for every engine.

Imports no PyTorch: engines that do not need it are measured without it.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from bench.measuring import repeat, seconds_of
from bench.resident import Resident, resident
from bench.roofline import Numbers, Work
from saccade.arch.gpt import GptConfig
from saccade.arch.positions import LearnedConfig, RotaryConfig
from saccade.arch.weights import Weights, flops, parameters
from saccade.tokens.marks import Marks

SEED = 1
MARKS = Marks()
PROMPT = 16
"""Tokens read before those whose writing is timed one by one."""
LONG_PROMPT = 512
FEW, MANY = 4, 36
"""Tokens written by two calls: the difference of their times is that of the tokens between, the prompt left out."""
BATCH = 16

ONE, FIRST, BATCHED = "batch 1, ms a token", f"prompt of {LONG_PROMPT}, ms", f"batch {BATCH}, ms a step"
PEAK, AFTER = "memory at most, MB", "memory after writing, MB"
SPEEDS, MEMORIES = (ONE, FIRST, BATCHED), (PEAK, AFTER)

Prompts = list[list[int]]
Write = Callable[[Prompts, int], Prompts]
"""Prompts of one length, and how many tokens to write after each -> those tokens."""


@dataclass(frozen=True)
class Shape:
    config: GptConfig
    vocabulary: int

    @property
    def weights(self) -> Weights:
        return self.config.weights(self.vocabulary)

    @property
    def parameters(self) -> int:
        return parameters(self.weights)

    @property
    def matrices(self) -> float:
        """Numbers in all matrices that are multiplied for each token, the output layer included."""
        return flops(self.weights, {"target": 1}) / 2

    def work(self, cell: str) -> Work:
        """What a kind of work cannot do without. Only the last token of a prompt needs the output layer."""
        if cell == FIRST:
            head = self.vocabulary * self.config.width
            return Work(self.matrices, (self.matrices - head) * LONG_PROMPT + head)
        rows = BATCH if cell == BATCHED else 1
        past = rows * self.config.cache_bytes(PROMPT + (FEW + MANY) // 2)
        return Work(self.matrices, rows * self.matrices, past)

    def least_megabytes(self, numbers: Numbers) -> float:
        """Weights as an engine keeps them, each once, and the keys and values of one text."""
        rest = 4 * (self.parameters - self.matrices)
        return (self.matrices * numbers.weight_bytes + rest + self.config.cache_bytes(PROMPT + MANY)) / 1e6

    def __str__(self) -> str:
        config = self.config
        key_heads = f" ({config.key_heads} of keys)" if config.key_heads else ""
        return (
            f"{config.layers} layers, width {config.width}, {config.heads} heads{key_heads}, feed-forward "
            f"{config.feedforward}, vocabulary {self.vocabulary:,}, {self.parameters:,} weights"
        )


SHAPES = {
    "gpt2": Shape(
        GptConfig(
            layers=12,
            width=768,
            heads=12,
            feedforward=3072,
            context=1024,
            positions=LearnedConfig(length=1024),
        ),
        vocabulary=50_257,
    ),
    "llama": Shape(
        GptConfig(
            layers=12,
            width=768,
            heads=12,
            key_heads=4,
            feedforward=2048,
            gated=True,
            activation="silu",
            norm="rms",
            bias=False,
            context=1024,
            positions=RotaryConfig(layout="halves"),
        ),
        vocabulary=32_000,
    ),
}


def draw_prompts(shape: Shape, batch: int, length: int) -> Prompts:
    draw, first = random.Random(SEED), max(MARKS.special) + 1
    return [[draw.randrange(first, shape.vocabulary) for _ in range(length)] for _ in range(batch)]


def measure_writer(title: str, shape: Shape, write: Write, calls: int, before: Resident) -> None:
    """Time every kind of work and look at the memory; `before` is that of the process without a model."""
    one, many = draw_prompts(shape, 1, PROMPT), draw_prompts(shape, BATCH, PROMPT)
    prompt = draw_prompts(shape, 1, LONG_PROMPT)
    check(title, write(one, MANY), MANY)
    # Now, because larger batches and longer prompts would leave their own traces.
    after = resident()
    figures = {
        ONE: median(repeat(lambda: step_seconds(write, one), calls)),
        FIRST: median(repeat(lambda: seconds_of(lambda: write(prompt, 1)), calls)),
    }
    check(title, write(many, FEW), FEW)
    figures[BATCHED] = median(repeat(lambda: step_seconds(write, many), calls))
    milliseconds = {cell: 1000 * seconds for cell, seconds in figures.items()}
    memory = {PEAK: after.peak - before.now, AFTER: after.now - before.now}
    print(json.dumps({"engine": title, "figures": milliseconds | memory}))


def check(title: str, written: Prompts, count: int) -> None:
    """All must do the same work: no engine may write the end mark."""
    if any(len(text) != count or MARKS.end in text for text in written):
        raise SystemExit(f"{title}: wrote {sorted({len(text) for text in written})} tokens, not {count} each")


def step_seconds(write: Write, prompts: Prompts) -> float:
    """Of one token more in every row, the prompt left out."""
    few, many = seconds_of(lambda: write(prompts, FEW)), seconds_of(lambda: write(prompts, MANY))
    return (many - few) / (MANY - FEW)
