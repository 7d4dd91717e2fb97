"""Training steps of one small model: `python -m bench.planned FAMILY STEPS GIGAFLOPS` prints their time and memory as
JSON, as measured and as planned for a machine with such a peak of products."""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import nn

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.gpt import GptConfig
from saccade.arch.heads import EncoderModel
from saccade.data.batches import SequencePairs
from saccade.data.picture_batches import PictureBatch
from saccade.data.ragged import Ragged
from saccade.data.rows import MaskedBatch
from saccade.data.sentences import UNKNOWN
from saccade.data.stream import Stream
from saccade.models.encdec import build_encoder_decoder
from saccade.models.encoders import build_encoder_model
from saccade.models.gpt import build_gpt
from saccade.native.allocator import keep_memory
from saccade.plan.devices import DEVICES
from saccade.plan.layout import Layout
from saccade.plan.memory import memory_of
from saccade.plan.steps import step_time
from saccade.plan.subject import MASKED_SHARE, Subject
from saccade.presets.preset import AnyModel
from saccade.tokens.marks import Marks
from saccade.train.loop import TrainConfig, equip
from saccade.train.objective import LanguageObjective, MaskedObjective, PictureObjective, SequenceObjective
from saccade.train.step import take_step

MARKS, VOCABULARY = Marks(), 8000
BLOCK = {"layers": 4, "width": 256, "heads": 4, "feedforward": 1024, "dropout": 0.1}


@dataclass(frozen=True)
class Case:
    """A model, and batches to train it on."""

    described: AnyModel
    model: nn.Module
    objective: Any
    batch: Callable[[np.ndarray], Any]
    length: int
    """Positions of a text; of a pair, of each side."""
    rows: int
    vocabulary: int = VOCABULARY


def _pairs(kind: str) -> Case:
    stack = BLOCK if kind == "transformer" else {"kind": kind, "width": 256, "layers": 2}
    config = EncoderDecoderConfig.read({"encoder": stack, "decoder": stack, "tie": "all"}, where=kind)
    texts = Ragged.of(np.random.default_rng(0).integers(9, VOCABULARY, size=(64, 24)).tolist())
    pairs = SequencePairs(texts, texts, MARKS)
    model = build_encoder_decoder(config, VOCABULARY)
    return Case(config, model, SequenceObjective(0.1), pairs.batch, 25, 64)


def _gpt() -> Case:
    config = GptConfig.read(BLOCK | {"context": 128}, where="gpt")
    stream = Stream(np.random.default_rng(0).integers(9, VOCABULARY, size=128 * 16 + 1).astype(np.uint16), MARKS)
    model = build_gpt(config, VOCABULARY)
    return Case(config, model, LanguageObjective(), lambda rows: stream.batch(128 * rows, 128), 128, 16)


def _bert() -> Case:
    config = EncoderModel.read({"encoder": BLOCK | {"context": 128}, "head": {"next_sentence": False}}, where="bert")
    random = np.random.default_rng(0)
    tokens_NT = torch.from_numpy(random.integers(9, VOCABULARY, size=(16, 128)))
    chosen_NT = torch.from_numpy(random.random((16, 128)) < MASKED_SHARE)

    def batch(rows: np.ndarray) -> MaskedBatch:
        tokens_BT, chosen_BT = tokens_NT[rows], chosen_NT[rows]
        unknown_B = torch.full((len(rows),), UNKNOWN)
        return MaskedBatch(tokens_BT, None, None, unknown_B, rows, chosen_BT, tokens_BT[chosen_BT])

    return Case(config, build_encoder_model(config, VOCABULARY), MaskedObjective(), batch, 128, 16)


def _vit() -> Case:
    front = {"kind": "patches", "height": 32, "width": 32, "patch": 4, "class_token": True}
    encoder = BLOCK | {"kind": "transformer", "front": front}
    config = EncoderModel.read({"encoder": encoder, "head": {"outputs": 10, "pooling": "first"}}, where="vit")
    random = np.random.default_rng(0)
    pixels_NHWC = torch.from_numpy(random.random((64, 32, 32, 3), dtype=np.float32))
    labels_N = torch.from_numpy(random.integers(10, size=64))

    def batch(rows: np.ndarray) -> PictureBatch:
        return PictureBatch(pixels_NHWC[rows], labels_N[rows])

    return Case(config, build_encoder_model(config, 0), PictureObjective(), batch, 65, 64, vocabulary=0)


CASES: dict[str, Callable[[], Case]] = {
    "Transformer": lambda: _pairs("transformer"),
    "BERT": _bert,
    "GPT": _gpt,
    "ViT": _vit,
    "RNN": lambda: _pairs("recurrent"),
}


def main() -> None:
    family, steps, gigaflops = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    torch.manual_seed(1)
    keep_memory()
    config = TrainConfig(steps=1, precision="float32", smoothing=0.0)
    _warm_up(config)
    before = _peak()
    case = CASES[family]()
    optimizer, gradients = equip(case.model, case.objective, config)
    seconds = []
    for _ in range(steps + 1):
        began = time.perf_counter()
        batches = [case.batch(part) for part in gradients.split(np.arange(case.rows))]
        take_step(gradients, optimizer, batches, 1.0)
        seconds.append(time.perf_counter() - began)
    subject = Subject(family, family, case.described, case.vocabulary, case.length)
    layout = Layout(precision="float32", micro_batch=case.rows)
    device = DEVICES["cpu"].model_copy(update={"teraflops": gigaflops / 1000})
    memory = memory_of(subject, layout)
    parts = len(gradients.split(np.arange(case.rows)))
    print(
        json.dumps(
            {
                "seconds": median(seconds[1:]),
                "planned_seconds": step_time(subject, layout, device, case.rows).total,
                "bytes": _peak() - before,
                # Each thread has gradients and logits of its own.
                "planned_bytes": memory.total + (parts - 1) * (memory.gradients + memory.logits),
                "weights": subject.stored,
            }
        )
    )


def _warm_up(config: TrainConfig) -> None:
    """What PyTorch and the kernels themselves need is not the model's: a step of a model of 8 kB comes first."""
    tiny = GptConfig(layers=1, width=16, heads=2, feedforward=32, context=8)
    stream, model = Stream(np.arange(9, 9 + 33, dtype=np.uint16), MARKS), build_gpt(tiny, 64)
    optimizer, gradients = equip(model, LanguageObjective(), config)
    batches = [stream.batch(8 * part, 8) for part in gradients.split(np.arange(4))]
    take_step(gradients, optimizer, batches, 1.0)


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
