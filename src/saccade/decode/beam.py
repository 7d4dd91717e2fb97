"""Beam search: keep the K likeliest beginnings of every sentence."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from saccade.decode.filters import forbid
from saccade.decode.hypothesis import NEVER_WRITTEN, Hypothesis, begin, length_penalty
from saccade.models.contract import Decoder, Memory
from saccade.tokens.bpe import END

NEVER = float("-inf")


def beam(
    decoder: Decoder,
    memory: Memory | None,
    *,
    prefixes: Sequence[Sequence[int]],
    limits: Sequence[int],
    width: int,
    alpha: float = 0.6,
) -> list[list[Hypothesis]]:
    """The best `width` texts of every sentence, best first; sentences that are done leave the batch."""
    sentences = [_Sentence(prefix, limit, width, alpha) for prefix, limit in zip(prefixes, limits, strict=True)]
    active = sentences
    logits_BV, state = begin(decoder, memory, prefixes, rows=width)
    device, vocabulary = logits_BV.device, logits_BV.shape[1]
    # All beams of a sentence begin alike: only the first may speak in the first round.
    sums_MK = torch.full((len(active), width), NEVER, device=device)
    sums_MK[:, 0] = 0.0
    written_MKT = torch.empty(len(active), width, 0, dtype=torch.long, device=device)
    length = 0
    while True:
        length += 1
        logprobs_BV = forbid(logits_BV, NEVER_WRITTEN).log_softmax(dim=-1)
        totals_ME = (sums_MK.view(-1, 1) + logprobs_BV).view(len(active), width * vocabulary)
        # Each beam can end in one way only, so 2K candidates always hold K that go on.
        best_MC, flat_MC = totals_ME.topk(min(2 * width, totals_ME.shape[1]), dim=1)
        from_MC, token_MC = flat_MC // vocabulary, flat_MC % vocabulary
        ends_MC = token_MC == END
        # A text that ends is taken if it is among the K best of its sentence.
        for place, candidate in ends_MC[:, :width].nonzero().tolist():
            tokens = written_MKT[place, from_MC[place, candidate]].tolist()
            active[place].take(tokens, float(best_MC[place, candidate]), length, ended=True)

        going_MK = ends_MC.to(torch.int8).argsort(dim=1, stable=True)[:, :width]
        sums_MK, from_MK, token_MK = (part.gather(1, going_MK) for part in (best_MC, from_MC, token_MC))
        kept_MKT = written_MKT.gather(1, from_MK[:, :, None].expand(-1, -1, length - 1))
        written_MKT = torch.cat([kept_MKT, token_MK[:, :, None]], dim=2)
        keep = [
            place
            for place, sentence in enumerate(active)
            if sentence.goes_on(written_MKT[place], sums_MK[place], length)
        ]
        if not keep:
            break
        rows_MK = torch.arange(len(active), device=device)[:, None] * width + from_MK
        if len(keep) < len(active):
            kept = torch.tensor(keep, device=device)
            sums_MK, token_MK, written_MKT, rows_MK = (t[kept] for t in (sums_MK, token_MK, written_MKT, rows_MK))
            active = [active[place] for place in keep]
        state = state.reorder(rows_MK.flatten())
        logits_BV, state = decoder.step(token_MK.flatten(), state)
    return [sentence.best() for sentence in sentences]


@dataclass
class _Sentence:
    """The texts one sentence has so far, and whether to look for more."""

    prefix: Sequence[int]
    limit: int
    width: int
    alpha: float
    texts: list[Hypothesis] = field(default_factory=list)

    def take(self, tokens: list[int], logprob: float, length: int, *, ended: bool) -> None:
        if logprob > NEVER:
            score = logprob / length_penalty(length, self.alpha)
            self.texts.append(Hypothesis([*self.prefix, *tokens], logprob, score, ended))

    def goes_on(self, written_KT: Tensor, sums_K: Tensor, length: int) -> bool:
        """Unless at its limit, or K texts are finished and the best unfinished one is behind the K-th of them."""
        if length >= self.limit:
            # Unfinished beams fill the places that no finished text took.
            for tokens, logprob in zip(written_KT.tolist(), sums_K.tolist(), strict=True):
                if len(self.texts) < self.width:
                    self.take(tokens, logprob, length, ended=False)
            return False
        if len(self.texts) < self.width:
            return float(sums_K[0]) > NEVER
        return float(sums_K[0]) / length_penalty(length, self.alpha) > self.best()[-1].score

    def best(self) -> list[Hypothesis]:
        return sorted(self.texts, key=lambda text: -text.score)[: self.width]
