"""How long and how fast to train a classifier of the user's own texts, by how many there are and how long they are."""

from collections.abc import Sequence
from dataclasses import dataclass

from saccade.tasks.contract import TrialConfig
from saccade.train.loop import TrainConfig
from saccade.train.optim import AdamConfig

TEXTS = 32
"""Texts in a batch."""
SMALL = 1_500
"""Up to so many training texts, several trainings are tried."""
TOKENS, MOST = 1_000_000, 30.0
"""Tokens that a training reads, about: a few minutes on two cores; and the largest number of passes."""
CHARACTERS = 3.5
"""Of a token, about."""


@dataclass(frozen=True)
class Pace:
    """Steps of a training."""

    steps: int
    batch_tokens: int
    epochs: float


def pace_of(texts: Sequence[str], *, fewest: float) -> Pace:
    """Batches of about 32 texts. Few texts: many passes (Mosbach et al. 2021; Zhang et al. 2020); early stopping ends
    those that do not help."""
    tokens = sum(map(len, texts)) / CHARACTERS + 2 * len(texts)
    epochs = min(MOST, max(fewest, TOKENS / tokens))
    batch_tokens = round(min(2048, max(256, TEXTS * tokens / len(texts))))
    return Pace(max(60, round(epochs * tokens / batch_tokens)), batch_tokens, epochs)


def fine_tuning(texts: Sequence[str]) -> tuple[TrainConfig, Pace]:
    """From a pre-trained encoder: a low rate, lower in the lower layers."""
    config, pace = _training(texts, 3.0, AdamConfig(rate=5e-4, decay=0.05))
    return config.model_copy(update={"layer_decay": 0.9}), pace


def from_scratch(texts: Sequence[str]) -> tuple[TrainConfig, Pace]:
    """Without a start: at least eight epochs, at a higher rate."""
    return _training(texts, 8.0, AdamConfig(rate=1e-3, decay=0.1))


def _training(texts: Sequence[str], fewest: float, adam: AdamConfig) -> tuple[TrainConfig, Pace]:
    """Validated once an epoch; ends after four validations without a better loss."""
    pace = pace_of(texts, fewest=fewest)
    config = TrainConfig(
        steps=pace.steps,
        batch_tokens=pace.batch_tokens,
        warmup=max(1, pace.steps // 10),
        validate_every=max(1, round(pace.steps / pace.epochs)),
        patience=4,
        smoothing=0.0,
        select_by="-loss",
        adam=adam,
    )
    return config, pace


def trials_for(texts: int) -> list[TrialConfig]:
    """Of few texts a training takes a minute or two, and its end depends on seed and rate: three of them."""
    if texts > SMALL:
        return []
    return [TrialConfig(seed=seed, rate=rate) for seed, rate in ((1, 5e-4), (2, 1e-3), (3, 2e-4))]
