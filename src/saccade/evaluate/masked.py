"""Accuracy of a pre-trained model, beside that of the most frequent answer."""

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
    """Predictions of masked words and of next sentences."""

    nats: float = 0.0
    """-log p of all masked words."""
    right: int = 0
    words: Counter[int] = field(default_factory=Counter)
    """Counts of the masked words."""
    next_sentence_right: int = 0
    next_sentence: Counter[int] = field(default_factory=Counter)
    """Counts of pairs with and without a next sentence."""

    def figures(self) -> dict[str, float]:
        """For a validation."""
        found = {"loss": self.nats / self.words.total(), "words": 100 * self.right / self.words.total()}
        if self.next_sentence:
            found["next_sentence"] = 100 * self.next_sentence_right / self.next_sentence.total()
        return found

    def scores(self) -> list[Score]:
        """Scores, each beside that of the most frequent answer in this text."""
        figures, masked = self.figures(), f"masked:{self.words.total()}"
        found = [
            Score("masked-word loss", figures["loss"], None, masked, digits=4),
            Score("masked-word accuracy", figures["words"], None, masked),
            Score("… always the most frequent word", _best_share(self.words), None, masked),
        ]
        if self.next_sentence:
            pairs = f"pairs:{self.next_sentence.total()}"
            found += [
                Score("next-sentence accuracy", figures["next_sentence"], None, pairs),
                Score("… always the same answer", _best_share(self.next_sentence), None, pairs),
            ]
        return found


def guess(model: MaskedModel | PermutationModel, rows: Rows, hider: Hider) -> Guesses:
    """All rows of an epoch, masked once."""
    found = Guesses()
    with torch.inference_mode():
        for numbers in rows.batches:
            batch = rows.masked(numbers, hider)
            logits_NV, logits_B2 = model.guess(batch.tokens_BT, batch.chosen_BT, batch.mask_BT, batch.segments_BT)
            found.nats += torch.nn.functional.cross_entropy(logits_NV, batch.labels_N, reduction="sum").item()
            found.right += int((logits_NV.argmax(dim=1) == batch.labels_N).sum())
            found.words.update(batch.labels_N.tolist())
            if logits_B2 is not None:
                known_B = batch.next_sentence_B != UNKNOWN
                labels = batch.next_sentence_B[known_B]
                found.next_sentence_right += int((logits_B2.argmax(dim=1)[known_B] == labels).sum())
                found.next_sentence.update(labels.tolist())
    return found


def _best_share(counts: Counter[int]) -> float:
    return 100 * counts.most_common(1)[0][1] / counts.total() if counts else 0.0
