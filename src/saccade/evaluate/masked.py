"""How often a pre-trained model guesses right, beside guessing the same thing every time."""

from collections import Counter
from dataclasses import dataclass, field

import torch

from saccade.data.corrupt import Hider
from saccade.data.rows import Rows
from saccade.data.sentences import UNKNOWN
from saccade.evaluate.metrics import Score
from saccade.models.bert import MaskedModel
from saccade.models.xlnet import PermutationModel


@dataclass
class Guesses:
    """What was guessed of hidden words, and of pairs of texts."""

    nats: float = 0.0
    """-log p of all hidden words."""
    right: int = 0
    words: Counter[int] = field(default_factory=Counter)
    """Hidden words, by how often."""
    follows_right: int = 0
    follows: Counter[int] = field(default_factory=Counter)
    """Pairs that follow, and that do not."""

    def figures(self) -> dict[str, float]:
        """For a validation."""
        found = {"loss": self.nats / self.words.total(), "words": 100 * self.right / self.words.total()}
        if self.follows:
            found["follows"] = 100 * self.follows_right / self.follows.total()
        return found

    def scores(self) -> list[Score]:
        """Each with what the most frequent answer of this very text would score."""
        figures, masked = self.figures(), f"masked:{self.words.total()}"
        found = [
            Score("masked-word loss", figures["loss"], None, masked, digits=4),
            Score("masked-word accuracy", figures["words"], None, masked),
            Score("… always the most frequent word", _best_share(self.words), None, masked),
        ]
        if self.follows:
            pairs = f"pairs:{self.follows.total()}"
            found += [
                Score("next-sentence accuracy", figures["follows"], None, pairs),
                Score("… always the same answer", _best_share(self.follows), None, pairs),
            ]
        return found


def guess(model: MaskedModel | PermutationModel, rows: Rows, hider: Hider) -> Guesses:
    """All rows of an epoch, hidden once."""
    found = Guesses()
    with torch.inference_mode():
        for numbers in rows.batches:
            batch = rows.masked(numbers, hider)
            logits_NV, logits_B2 = model.guess(batch.tokens_BT, batch.chosen_BT, batch.mask_BT, batch.segments_BT)
            found.nats += torch.nn.functional.cross_entropy(logits_NV, batch.labels_N, reduction="sum").item()
            found.right += int((logits_NV.argmax(dim=1) == batch.labels_N).sum())
            found.words.update(batch.labels_N.tolist())
            if logits_B2 is not None:
                known_B = batch.follows_B != UNKNOWN
                labels = batch.follows_B[known_B]
                found.follows_right += int((logits_B2.argmax(dim=1)[known_B] == labels).sum())
                found.follows.update(labels.tolist())
    return found


def _best_share(counts: Counter[int]) -> float:
    return 100 * counts.most_common(1)[0][1] / counts.total() if counts else 0.0
