"""How likely a corrector finds it that a word it would change was right as it was."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from saccade.data.batches import Ragged, SequencePairs, in_order
from saccade.models.encdec import EncoderDecoder
from saccade.tasks.edits import Edit, apply
from saccade.tokens.vocabulary import Vocabulary

BATCH_TOKENS = 4096


class Left(NamedTuple):
    """A text, mended up to a word, and that word as it was typed."""

    source: list[int]
    """The whole text as it was typed."""
    target: list[int]
    begin: int
    """Where the word begins in the target, and where it ends; the end mark is the token behind the last."""
    stop: int


def doubts(
    reader: EncoderDecoder,
    model: EncoderDecoder,
    vocabulary: Vocabulary,
    texts: Sequence[str],
    changes: Sequence[list[Edit]],
) -> list[list[float]]:
    """For every change of every text, the probability that the word is left as it is, where all before it is mended.

    `reader` is the model as it reads fastest.
    """
    rows = [row for text, some in zip(texts, changes, strict=True) if some for row in _left(vocabulary, text, some)]
    if not rows:
        return [[] for _ in changes]
    text_of = np.repeat(np.arange(len(changes)), [len(some) for some in changes])
    pairs = SequencePairs(Ragged.of([row.source for row in rows]), Ragged.of([row.target for row in rows]))
    found = np.zeros(len(rows))
    with torch.inference_mode():
        # By the length of their sources: so the changes of one text come together, and it is read once for all.
        for part in in_order(2 * pairs.sizes()[0], BATCH_TOKENS):
            batch = pairs.batch(part)
            _, first, of = np.unique(text_of[part], return_index=True, return_inverse=True)
            mask_MS = None if batch.source_mask_BS is None else batch.source_mask_BS[first]
            memory = reader.read(batch.source_BS[first], mask_MS).rows(torch.from_numpy(of))
            logits_BTV = model.decoder(batch.target_BT, memory)
            chosen_BT = logits_BTV.log_softmax(dim=-1).gather(2, batch.labels_BT[..., None])[..., 0]
            found[part] = [
                chosen_T[rows[i].begin : rows[i].stop].sum().exp() for i, chosen_T in zip(part, chosen_BT, strict=True)
            ]
    probabilities = iter(found.tolist())
    return [[next(probabilities) for _ in some] for some in changes]


def _left(vocabulary: Vocabulary, text: str, changes: list[Edit]) -> Iterator[Left]:
    befores = [apply(text[: edit.start], changes[:place]) for place, edit in enumerate(changes)]
    # What follows the word, if only the end, belongs to it: "the" may be left where "then" begins.
    wholes = [f"{before}{edit.wrong}{text[edit.stop :][:1]}" for before, edit in zip(befores, changes, strict=True)]
    source, *encoded = vocabulary.encode([text, *befores, *wholes])
    for before, whole, edit in zip(encoded[: len(changes)], encoded[len(changes) :], changes, strict=True):
        same = zip(before, whole, strict=False)
        begin = next((place for place, (one, other) in enumerate(same) if one != other), len(before))
        yield Left(source, whole, begin, len(whole) + (edit.stop == len(text)))
