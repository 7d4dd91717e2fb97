"""The command that plans a training before it starts."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from saccade.cli.names import PlannedName
from saccade.errors import WrongUse


def plan(
    *models: PlannedName,
    tokens: float | None = None,
    device: str = "",
    count: int | None = None,
    hours: float | None = None,
    days: float | None = None,
    price: float | None = None,
    budget: float | None = None,
    utilisation: float | None = None,
    context: int | None = None,
    batch_tokens: float | None = None,
    layout: str = "",
    set_: Annotated[list[str], Parameter(name="--set", negative="")] = [],  # noqa: B006
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    format: Literal["text", "json", "markdown"] = "text",
) -> int:
    """Plan a training: parameters, operations, memory, devices, days, energy, money. Nothing is trained.

    For example:

        saccade plan gpt2-xl
        saccade plan gopher --device tpu-v3 --count 4096 --hours 920 --price 1.00
        saccade plan llama-7b --device h100 --count 64 --layout "sharded=64 checkpointing=full"
        saccade plan gpt3 --set model.layers=48 --tokens 100e9 --set device.memory=141
        saccade plan en-es
        saccade plan --budget 10000 --device v100
        saccade plan lectures -o table.png
        saccade plan gpt2 gpt2-xl gpt3 --format markdown

    Several models are compared in one table. Without a model, a budget of dollars or of days is planned: the
    compute-optimal size and number of tokens. What a plan assumes, such as the share of a device's peak that is
    reached, is printed with its source.

    Parameters
    ----------
    models:
        A preset, a recipe, a model folder, or `lectures` for the lectures' whole table. None: list presets and devices.
    tokens:
        Tokens that the model sees in all, such as 300e9. Default: the paper's, or 20 for each parameter.
    device:
        A device by name. Default: the paper's, else a100; for recipes and folders cpu.
    count:
        Devices. Default: the paper's, else the least number that holds the model.
    hours:
        Hours they work; then their utilisation is computed. Default: by the step-time model.
    days:
        The same in days.
    price:
        Dollars for an hour of one device.
    budget:
        Dollars to spend; with a model: how far they take it.
    utilisation:
        Share of the peak that is reached, instead of the step-time model.
    context:
        Tokens of a training text; of a pair, of each side.
    batch_tokens:
        Tokens of a step.
    layout:
        How the model is divided: data=, sharded=, tensor=, pipeline=, micro_batch=, checkpointing=none|full,
        precision=mixed|float32, optimizer=adam|muon. Default: the simplest that is nearly the fastest.
    set_:
        Change a key of the model or of the device: model.layers=48, device.teraflops=400. May be repeated.
    output:
        Write a picture (.png, .svg), a page (.html), a table (.md) or a record (.json).
    format:
        json: one JSON object for each model; markdown: a table.
    """
    from saccade.cli.planning import afford, changes_by_part, device_for, give, print_known, subjects_for, within
    from saccade.plan.plan import Plan, Wishes

    changes = changes_by_part(set_)
    wishes = Wishes.read(
        {
            "tokens": tokens, "count": count, "hours": hours, "days": days, "utilisation": utilisation,
            "batch_tokens": batch_tokens, "layout": layout_table(layout),
        },
        where="options",
    )  # fmt: skip
    if models:
        plans = []
        for subject in subjects_for(models, changes, context):
            chosen = device_for(device or subject.trained.device or "a100", price, changes)
            plans.append(Plan(subject, chosen, within(wishes, subject, chosen, budget)))
        give(models, plans, output, format)
    elif budget is None and days is None:
        print_known(format)
    else:
        afford(device_for(device or "a100", price, changes), budget, days, count or 1, format)
    return 0


def layout_table(text: str) -> dict[str, str] | None:
    """`tensor=8 data=64` -> the table of a layout; None where nothing is said."""
    parts = [part.partition("=") for part in text.replace(",", " ").split()]
    for name, equals, value in parts:
        if not equals or not value:
            raise WrongUse(f"--layout {text!r}: {name!r} has no value; write it as tensor=8 data=64")
    return {name: value for name, _, value in parts} or None
