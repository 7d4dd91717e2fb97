"""The card of a trained model: what it is, how it was made, how good it is, all as measured."""

from collections.abc import Sequence

import torch
from torch import nn

from saccade.config import Table
from saccade.evaluate.metrics import Score
from saccade.tasks.contract import Recipe
from saccade.train.loop import Outcome


def card(
    recipe: Recipe,
    model: nn.Module,
    outcome: Outcome,
    scores: Sequence[Score],
    arithmetic: Table | None = None,
    remarks: Sequence[str] = (),
) -> str:
    """Markdown; `saccade show` prints it."""
    parameters = sum(weight.numel() for weight in model.parameters())
    cores = torch.get_num_threads()
    validation = ", ".join(f"{name} {value:.4g}" for name, value in outcome.scores.items())
    lines = [
        f"# {recipe.name}",
        "",
        recipe.card.summary or f"A model for {recipe.task}.",
        "",
        f"- task: {recipe.task}",
        f"- parameters: {parameters:,}",
        f"- recipe: {recipe.name}, seed {recipe.train.seed}, {outcome.step:,} of {recipe.train.steps:,} steps",
        f"- weights: {outcome.chosen}",
        f"- time: {outcome.seconds / 60:.0f} minutes on {cores} core{'s' * (cores > 1)}, validation included",
        f"- validation: {validation}",
        *([f"- arithmetic: {_arithmetic(arithmetic)}"] if arithmetic else []),
        *(f"- test: {score}" for score in scores),
        *(f"- {remark}" for remark in remarks),
        f"- data: {recipe.card.data or 'own files'}",
        f"- licence of the weights: {recipe.card.licence}",
    ]
    return "\n".join(lines) + "\n"


def _arithmetic(found: Table) -> str:
    """Figures of the stored weights on the validation part."""
    return f"{found['figure']} {found['int16']} in int16, {found['int8']} in int8; default {found['default']}"
