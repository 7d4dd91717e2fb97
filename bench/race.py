"""One engine trains until its greedy translations reach a BLEU; the clock stands still while they are made.

`python -m bench.race ENGINE DATA.pt --plan JSON` tells its progress on standard error and prints one line of JSON.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import nn

from bench.console import say
from bench.engines import saccade as own
from bench.engines import torch as plain
from bench.engines.contract import SIZE, Batch, Engine, train_step
from bench.transplant import as_saccade
from saccade.data.batches import SequencePairs
from saccade.data.ragged import Ragged
from saccade.data.sampler import Sampler
from saccade.data.text import Pair
from saccade.decode.search import SearchConfig
from saccade.evaluate.metrics import bleu
from saccade.models.answering import sequence_runtime
from saccade.models.encdec import EncoderDecoder
from saccade.pipelines.translator import Translator
from saccade.tokens.vocabulary import Vocabulary, read_vocabulary
from saccade.train.schedule import SCHEDULES

ROUNDED = 0.02
"""Largest difference of a loss to the same one with rounded products."""


@dataclass(frozen=True)
class Plan:
    """How an engine trains; what is not here is the same for all, in `engines/contract.py`."""

    rate: float
    """Peak learning rate."""
    schedule: str
    warmup: int
    steps: int
    """Where a linear schedule reaches zero; nobody trains longer."""
    budget: int
    """Padded target tokens in a batch."""
    dropout: float = SIZE.dropout
    muon: float = 0.0
    """Momentum of Saccade's Muon; 0 is Adam for all weights."""
    positions: str = "sinusoidal"
    """Kind of Saccade's positions."""

    def rate_at(self, step: int) -> float:
        return self.rate * SCHEDULES[self.schedule](step, self.warmup, self.steps)

    def __str__(self) -> str:
        schedule = f"rate {self.rate:g}, {self.schedule}, warm-up {self.warmup}"
        optimizer = f", Muon {self.muon:g}" if self.muon else ""
        positions = f", {self.positions} positions" if self.positions != "sinusoidal" else ""
        return f"{schedule}{optimizer}, batches of {self.budget}, dropout {self.dropout:g}{positions}"


@dataclass(frozen=True)
class Racer:
    build: Callable[[Vocabulary, Plan], Engine]
    """A model under training."""
    readable: Callable[[nn.Module], EncoderDecoder]
    """Its weights in a model that Saccade can decode."""


def _itself(model: nn.Module) -> EncoderDecoder:
    assert isinstance(model, EncoderDecoder)
    return model


def _transplanted(model: nn.Module) -> EncoderDecoder:
    assert isinstance(model, plain.Plain)
    return as_saccade(model)


def _build_own(vocabulary: Vocabulary, plan: Plan) -> Engine:
    return own.wrap(own.build_model(len(vocabulary), plan.dropout, plan.positions), plan.muon)


def _build_plain(vocabulary: Vocabulary, plan: Plan) -> Engine:
    assert plan.dropout == SIZE.dropout, "the peer's dropout is not tuned"
    assert not plan.muon, "the peer has Adam"
    assert plan.positions == Plan.positions, "the peer has sinusoids"
    return plain.build(len(vocabulary), vocabulary.marks.table())


RACERS = {"saccade": Racer(_build_own, _itself), "torch": Racer(_build_plain, _transplanted)}


@dataclass(frozen=True)
class Judge:
    """BLEU of greedy translations of the development part, lower-cased, 13a."""

    vocabulary: Vocabulary
    pairs: list[Pair]

    def __call__(self, racer: Racer, model: nn.Module) -> float:
        sources, references = zip(*self.pairs, strict=True)
        translator = Translator(sequence_runtime(racer.readable(model)), self.vocabulary, SearchConfig(beam=1))
        outputs = [translation.text for translation in translator(list(sources))]
        model.train()
        return bleu(outputs, [[reference] for reference in references], lowercase=True).value


class Batches:
    """The same batches in the same order for every engine."""

    def __init__(self, examples: SequencePairs, budget: int) -> None:
        self.examples = examples
        self.sampler = Sampler(*examples.sizes(), budget=budget, seed=1)

    def __next__(self) -> Batch:
        made = self.examples.batch(next(self.sampler))
        real_BT = torch.ones_like(made.labels_BT, dtype=torch.bool) if made.real_BT is None else made.real_BT
        return Batch(made.source, made.source_mask, made.target_BT, made.labels_BT, real_BT)


@dataclass
class Race:
    engine: str
    plan: dict[str, float | str]
    most: float
    """Training seconds after which it gave up."""
    reached: bool = False
    step: int = 0
    seconds: float = 0.0
    """Time spent training: batches made, steps taken."""
    best: float = 0.0
    curve: list[tuple[int, float]] = field(default_factory=list)
    """Step and BLEU, at every look."""
    hopeless: bool = False
    """Stopped because it was far behind another run of its engine at the same step."""


PATIENCE, BEHIND = 400, 4.0
"""From this step on, a run that is so much BLEU behind another rate of its engine is stopped."""


def run(
    racer: Racer,
    plan: Plan,
    batches: Batches,
    judge: Judge,
    *,
    every: int,
    most: float,
    goal: float,
    ahead: dict[int, float],
) -> Race:
    engine = racer.build(judge.vocabulary, plan)
    engine.model.train()
    race = Race(engine.title, asdict(plan), most)
    while race.step < plan.steps and race.seconds < most and not (race.reached or race.hopeless):
        began = time.perf_counter()
        race.step += 1
        for group in engine.optimizer.param_groups:
            group["lr"] = plan.rate_at(race.step)
        loss = train_step(engine, next(batches))
        race.seconds += time.perf_counter() - began
        if race.step % every == 0 or race.step == plan.steps or race.seconds >= most:
            score = judge(racer, engine.model)
            race.best = max(race.best, score)
            race.reached = score >= goal
            race.hopeless = race.step >= PATIENCE and score < ahead.get(race.step, 0.0) - BEHIND
            race.curve.append((race.step, score))
            say(f"  step {race.step}, {race.seconds:.0f} s: loss {loss:.2f}, BLEU {score:.2f}")
    return race


def check(racer: Racer, plan: Plan, vocabulary: Vocabulary, batch: Batch) -> None:
    """What is decoded must be what is trained: both give the same loss, but for rounded products."""
    engine = racer.build(vocabulary, plan)
    engine.model.eval()
    trained = engine.backward(batch)
    reader = own.wrap(racer.readable(engine.model).eval()).backward(batch)
    if abs(trained - reader) > ROUNDED:
        raise SystemExit(f"{engine.title}: its loss is {trained:.4f}, but {reader:.4f} where it is decoded")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=RACERS)
    parser.add_argument("data", type=Path)
    parser.add_argument("--plan", required=True)
    parser.add_argument("--every", type=int, required=True)
    parser.add_argument("--most", type=float, required=True)
    parser.add_argument("--goal", type=float, required=True)
    parser.add_argument("--ahead", default="[]", help="step and BLEU of the engine's best run so far")
    given = parser.parse_args()

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    stored = torch.load(given.data, weights_only=True)
    vocabulary = read_vocabulary(stored["tokenizer"], given.data)
    examples = SequencePairs(Ragged.of(stored["sources"]), Ragged.of(stored["targets"]), vocabulary.marks)
    plan, racer = Plan(**json.loads(given.plan)), RACERS[given.engine]
    check(racer, plan, vocabulary, next(Batches(examples, 256)))
    judge = Judge(vocabulary, [(source, target) for source, target in stored["development"]])
    torch.manual_seed(1)
    limits = {"every": given.every, "most": given.most, "goal": given.goal}
    race = run(racer, plan, Batches(examples, plan.budget), judge, **limits, ahead=dict(json.loads(given.ahead)))
    print(json.dumps(asdict(race)))


if __name__ == "__main__":
    main()
