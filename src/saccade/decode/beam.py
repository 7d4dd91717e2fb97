"""Beam search: keep the K likeliest beginnings of every sentence."""

from collections.abc import Sequence

import torch
from torch import Tensor

from saccade.decode.filters import forbid
from saccade.decode.hypothesis import NEVER_WRITTEN, Hypothesis, begin, length_penalty
from saccade.models.contract import Decoder, Memory
from saccade.tokens.bpe import END


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
    done: list[list[Hypothesis]] = [[] for _ in prefixes]
    active = list(range(len(prefixes)))
    logits_BV, state, _ = begin(decoder, memory, prefixes, rows=width)
    device, vocabulary = logits_BV.device, logits_BV.shape[1]
    # All beams of a sentence begin alike: only the first may speak in the first round.
    sums_MK = torch.full((len(active), width), float("-inf"), device=device)
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
        _collect(done, active, prefixes, written_MKT, best_MC, from_MC, ends_MC, width, length, alpha)

        going_MK = ends_MC.to(torch.int8).argsort(dim=1, stable=True)[:, :width]
        sums_MK, from_MK, token_MK = (part.gather(1, going_MK) for part in (best_MC, from_MC, token_MC))
        written_MKT = torch.cat([_rows(written_MKT, from_MK), token_MK[:, :, None]], dim=2)
        keep = []
        for place, sentence in enumerate(active):
            at_limit = length >= limits[sentence]
            if at_limit:
                _cut_off(done[sentence], prefixes[sentence], written_MKT[place], sums_MK[place], width, length, alpha)
            elif not _settled(done[sentence], float(sums_MK[place, 0]), width, length, alpha):
                keep.append(place)
        if not keep:
            break
        first_M1 = torch.arange(len(active), device=device)[:, None] * width
        rows_MK = first_M1 + from_MK
        if len(keep) < len(active):
            kept = torch.tensor(keep, device=device)
            sums_MK, token_MK, written_MKT, rows_MK = (t[kept] for t in (sums_MK, token_MK, written_MKT, rows_MK))
            active = [active[place] for place in keep]
        state = state.reorder(rows_MK.flatten())
        logits_BV, state = decoder.step(token_MK.flatten(), state)
    return [sorted(texts, key=lambda text: -text.score)[:width] for texts in done]


def _collect(
    done: list[list[Hypothesis]],
    active: list[int],
    prefixes: Sequence[Sequence[int]],
    written_MKT: Tensor,
    best_MC: Tensor,
    from_MC: Tensor,
    ends_MC: Tensor,
    width: int,
    length: int,
    alpha: float,
) -> None:
    """Take the texts that ended, if they are among the K best of their sentence."""
    for place, candidate in ends_MC[:, :width].nonzero().tolist():
        logprob = float(best_MC[place, candidate])
        if logprob == float("-inf"):
            continue
        tokens = written_MKT[place, from_MC[place, candidate]].tolist()
        sentence = active[place]
        score = logprob / length_penalty(length, alpha)
        done[sentence].append(Hypothesis([*prefixes[sentence], *tokens], logprob, score, True))


def _cut_off(
    texts: list[Hypothesis],
    prefix: Sequence[int],
    written_KT: Tensor,
    sums_K: Tensor,
    width: int,
    length: int,
    alpha: float,
) -> None:
    """At the length limit, unfinished beams fill the places that no finished text took."""
    for tokens, logprob in zip(written_KT.tolist(), sums_K.tolist(), strict=True):
        if len(texts) < width and logprob > float("-inf"):
            texts.append(Hypothesis([*prefix, *tokens], logprob, logprob / length_penalty(length, alpha), False))


def _settled(texts: list[Hypothesis], best_alive: float, width: int, length: int, alpha: float) -> bool:
    """K texts are finished, and the best unfinished one is already behind the K-th of them."""
    if best_alive == float("-inf"):
        return True
    if len(texts) < width:
        return False
    worst = sorted((text.score for text in texts), reverse=True)[width - 1]
    return best_alive / length_penalty(length, alpha) <= worst


def _rows(written_MKT: Tensor, from_MK: Tensor) -> Tensor:
    return written_MKT.gather(1, from_MK[:, :, None].expand(-1, -1, written_MKT.shape[2]))
