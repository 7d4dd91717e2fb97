"""Give CTranslate2 Saccade's weights, and show that they arrived: both must say the same of the same text.

`python -m bench.translators.same SIZE --folder FOLDER` writes the folder and prints how far they agree. Not timed.
"""

import json
from pathlib import Path

import ctranslate2
import torch

from bench.convert import write_ctranslate2
from bench.translators import ctranslate2 as peer
from bench.translators import saccade as own
from bench.translators.contract import MARKS, SIZES, Sentences, build_model, draw_sources, read_arguments
from saccade.models.answering import sequence_runtime
from saccade.models.encdec import EncoderDecoder

BATCH = 8


def likelihoods(model: EncoderDecoder, sources: Sentences, targets: Sentences) -> torch.Tensor:
    """Log-probability of every target token and of the end mark, by exact Saccade."""
    target_BT = torch.tensor([[MARKS.start, *target] for target in targets])
    labels_BT = torch.tensor([[*target, MARKS.end] for target in targets])
    with torch.inference_mode():
        logits_BTV: torch.Tensor = model(torch.tensor(sources), None, target_BT)
    return logits_BTV.log_softmax(-1).gather(2, labels_BT[:, :, None])[:, :, 0]


def main() -> None:
    given = read_arguments("folder")
    size = SIZES[given.size]
    model = build_model(size)
    words = peer.words_of(size.vocabulary)
    write_ctranslate2(model, words, MARKS, Path(given.folder))

    sources = draw_sources(size, BATCH)
    ours = own.translator(sequence_runtime(model, "exact"))(sources, 1)
    theirs = peer.translator(given.folder, size.vocabulary, "float32", given.threads)(sources, 1)
    pairs = [pair for one, other in zip(ours, theirs, strict=True) for pair in zip(one, other, strict=True)]

    scorer = ctranslate2.Translator(given.folder, compute_type="float32", intra_threads=given.threads)
    named = [[[words[i] for i in text] for text in side] for side in (sources, ours)]
    scored = torch.tensor([one.log_probs for one in scorer.score_batch(*named)])
    result = {
        "agreement": sum(one == other for one, other in pairs) / len(pairs),
        "variety": len({token for text in ours for token in text}),
        "difference": (scored - likelihoods(model, sources, ours)).abs().max().item(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
