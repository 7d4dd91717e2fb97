"""Steps of a large preset whose weights no process has whole: built on meta, shared, measured against its plan.

    torchrun --standalone --nproc-per-node 2 tests/large_step.py '{"preset": "gpt2-xl", "steps": 1}'

`tests/parallel.py xl` starts it. Muon, as in the project's own recipes: with AdamW the state alone is 16 bytes
a weight, 24.9 GB for GPT-2 XL, which is more than 24 GB; with Muon it is 12 for the matrices of the blocks.
"""

import json
import resource
import sys
import time

import torch
from torch import Tensor

from saccade.arch.gpt import GptConfig
from saccade.data.stream import LanguageBatch
from saccade.models.gpt import build_gpt
from saccade.plan.layout import Layout
from saccade.plan.memory import memory_of
from saccade.plan.subject import Subject
from saccade.presets.rows import PRESETS
from saccade.train.objective import LanguageObjective
from saccade.train.optim import AdamConfig
from saccade.train.parallel import ParallelConfig, RankGradients, materialise
from saccade.train.ranks import joined
from saccade.train.step import take_step

LENGTH = 128
"""Tokens of a text: one for each process."""


def main(preset: str, steps: int, layers: int = 0, muon: float = 0.95) -> None:
    """`layers`: of a smaller model, to try it out; 0: all."""
    with joined() as ranks:
        before = _peak()
        config = PRESETS[preset].model
        assert isinstance(config, GptConfig)
        config = config.model_copy(update={"dropout": 0.0, "layers": layers or config.layers})
        with torch.device("meta"):
            model = build_gpt(config, PRESETS[preset].vocabulary)
        parallel = ParallelConfig(sharded=ranks.count, checkpointing="full")
        gradients = RankGradients(model, LanguageObjective(), parallel, ranks)
        torch.manual_seed(ranks.rank)
        materialise(gradients.model, _begin)
        gradients.find_parts()
        optimizer = gradients.optimizer(AdamConfig(rate=1e-4), muon, layer_decay=1.0, kind=torch.float32)
        layout = Layout(
            sharded=ranks.count, checkpointing="full", precision="float32", optimizer="muon" if muon else "adam"
        )
        planned = (
            ranks.count
            * memory_of(
                Subject.of(PRESETS[preset].changed([("model.layers", config.layers)])).with_context(LENGTH), layout
            ).total
        )
        if ranks.first:
            print(f"{preset}: {sum(w.numel() for w in model.parameters()):,} weights; planned {planned / 1e9:.2f} GB")
        for step in range(1, steps + 1):
            began = time.perf_counter()
            tokens_BT = torch.randint(4, PRESETS[preset].vocabulary, (1, LENGTH + 1))
            batch = LanguageBatch(tokens_BT[:, :-1], tokens_BT[:, 1:].contiguous(), None, None, tokens_BT.numpy())
            gradients.idle.append(False)
            taken = take_step(gradients, optimizer, [batch], 1.0)
            loss = ranks.sum(taken.totals)["loss"]
            peak = ranks.sum({"bytes": _peak() - before})["bytes"]
            if ranks.first:
                told = f"loss {loss:.3f}, norm {taken.norm:.2f}, {time.perf_counter() - began:.0f} s"
                memory = f"measured {peak / 1e9:.2f} GB in {ranks.count} processes: planned {planned / peak - 1:+.0%}"
                print(f"step {step}: {told}; {memory}", flush=True)


def _begin(name: str, part: Tensor) -> None:
    if part.ndim >= 2:
        part.normal_(std=0.02)
    else:
        part.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
