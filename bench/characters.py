"""A small language model of letters: Saccade's training beside a plain loop with nanoGPT's settings for a CPU.

All train the same sizes on the same text in batches of the same size, in turn, once for each seed. What is compared is
the time of all steps, and the loss on the whole of what was held out. Saccade trains by its recipe, whose optimiser
needs fewer steps; and with the plain loop's optimiser and steps: that compares programs alone.
"""

from statistics import mean, median
from typing import Any

from bench.console import say
from bench.engines.characters import read_recipe
from bench.engines.nanogpt import PLAN
from bench.machine import Machine
from bench.process import MALLOC, EngineError, measure_apart
from bench.report import Report, spread
from bench.settings import Settings
from saccade.data.text import data_folders, find
from saccade.tasks.language import LanguageRecipe
from saccade.train.precision import kind_of_products

TEXT = "tinyshakespeare/input.txt"
SEEDS = 3
SHARE, TOLERANCE = 0.7, 0.01
"""At most this share of the plain loop's time is wanted, and at most so much more loss."""

Runs = dict[str, list[dict[str, Any]]]


def compare_characters(settings: Settings) -> Report:
    recipe = read_recipe()
    _insist_on_equal_sizes(recipe)
    path = find(TEXT, data_folders(settings.data))
    machine = Machine(settings.threads)
    own = ("bench.engines.characters", path.parent.parent)
    engines: dict[str, tuple[Any, ...]] = {
        "saccade": own,
        "adamw": (*own, "--adamw"),
        "plain": ("bench.engines.nanogpt", path),
    }
    runs: Runs = {engine: [] for engine in engines}
    rounds = settings.rounds(SEEDS)
    for seed in range(1, rounds + 1):
        place = f"round {seed}/{rounds}"
        machine.look(place)
        for engine, (module, *work) in engines.items():
            run = measure_apart(module, *work, "--seed", seed, threads=settings.threads, environment=MALLOC)
            runs[engine].append(run)
            say(f"{place}  {engine:8} {run['seconds']:.1f} s, validation loss {run['loss']:.4f}")
    return describe(settings, recipe, machine, runs)


def _insist_on_equal_sizes(recipe: LanguageRecipe) -> None:
    """The recipe and the plain loop's plan are written apart: a change of one must not go unseen."""
    model, rows = recipe.model, recipe.train.batch_tokens // recipe.model.context
    own = (model.layers, model.width, model.heads, model.feedforward, model.context, rows, model.dropout)
    plain = (PLAN.layers, PLAN.width, PLAN.heads, 4 * PLAN.width, PLAN.context, PLAN.batch, 0.0)
    if own != plain:
        raise EngineError(
            f"layers, width, heads, feedforward, context, rows, dropout are {own}, the plain loop's {plain}"
        )


def describe(settings: Settings, recipe: LanguageRecipe, machine: Machine, runs: Runs) -> Report:
    validated = {run["validated"] for measured in runs.values() for run in measured}
    if len(validated) > 1:
        raise EngineError(f"not all were validated on as many letters: {sorted(validated)}")
    seconds = {measured[0]["engine"]: [run["seconds"] for run in measured] for measured in runs.values()}
    losses = {engine: [run["loss"] for run in measured] for engine, measured in runs.items()}
    plain_seconds, plain_loss = median(run["seconds"] for run in runs["plain"]), mean(losses["plain"])
    rows = [
        [
            measured[0]["engine"],
            f"{measured[0]['parameters']:,}",
            f"{median(taken):.1f}",
            spread(taken, 1),
            f"{median(taken) / plain_seconds:.2f}",
            f"{measured[0]['steps']:,}",
            f"{measured[0]['steps'] * recipe.train.batch_tokens / median(taken):,.0f}",
            f"{mean(losses[engine]):.4f}",
            f"{mean(losses[engine]) - plain_loss:+.4f}",
            spread(losses[engine], 4),
        ]
        for (engine, measured), taken in zip(runs.items(), seconds.values(), strict=True)
    ]
    return Report(
        title="A language model of letters",
        about=[*_about(settings, recipe, len(runs["plain"]), validated.pop()), str(machine)],
        header=[
            "engine",
            "weights",
            "seconds",
            "min–max",
            "of plain",
            "steps",
            "tokens/s",
            "loss",
            "above plain",
            "min–max",
        ],
        rows=rows,
        unit="seconds",
        panels={"": seconds},
        digits=1,
    )


def _kind() -> str:
    return str(kind_of_products("auto")).removeprefix("torch.")


def _about(settings: Settings, recipe: LanguageRecipe, rounds: int, validated: int) -> list[str]:
    model, training = recipe.model, recipe.train
    work = (
        f"tinyshakespeare by letters, nanoGPT's settings for a CPU: {model.layers} layers, width {model.width}, "
        f"{model.heads} heads, context {model.context}, batches of {training.batch_tokens // model.context} windows, "
        f"{PLAN.steps:,} steps of the plain loop, no dropout. Each engine trains in a process of its own, in turn, "
        f"with the same malloc settings (threads: {settings.threads}), once for each of {rounds} seeds. Seconds are "
        "those of all steps, batches made on the way included; reading the text before and validating after are not."
    )
    goal = (
        f"Loss is the mean over the seeds of nats per letter, on the last tenth of the text ({validated:,} letters "
        f"predicted) in windows of {model.context} that do not overlap, with the weights after the last step. Wanted "
        f"of Saccade: at most {SHARE} of the plain loop's time, at most {TOLERANCE} more loss."
    )
    ways = (
        f"The plain loop: random windows, rate {PLAN.rate:g} falling along a cosine to {PLAN.least:g}, warm-up "
        f"{PLAN.warmup}, fused AdamW with decay {PLAN.decay:g}. Saccade: the recipe {recipe.name} in the loop of "
        f"`saccade train`, every window once before any comes again, {training.steps:,} steps, Muon with momentum "
        f"{training.muon:g} for the matrices inside blocks and AdamW for the rest, rate {training.adam.rate:g}, "
        f"{training.schedule}, warm-up {training.warmup}, decay {training.adam.decay:g}; and with AdamW alone, "
        f"at the plain loop's rate, for as many steps as that. Its matrix products are of {_kind()}. Its vocabulary "
        "has a few marks more, which it learns not to expect."
    )
    return [work, goal, ways]
