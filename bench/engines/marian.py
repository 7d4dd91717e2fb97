"""Marian as Hugging Face transformers has it, in a plain loop."""

import torch.nn.functional as F
import transformers
from torch import Tensor

from bench.engines.contract import SIZE, Batch, Engine, MarkIds, build_plain_optimizer, in_one_piece, run
from bench.marian import build_marian
from saccade.tokens.marks import Marks


def build(vocabulary: int, marks: MarkIds) -> Engine:
    model = build_marian(
        vocabulary=vocabulary,
        marks=Marks.read(marks, where="batches"),
        width=SIZE.width,
        layers=SIZE.layers,
        heads=SIZE.heads,
        feedforward=SIZE.feedforward,
        dropout=SIZE.dropout,
        use_cache=False,
    )

    def loss(batch: Batch) -> Tensor:
        # Its own `labels=` argument would compute the output layer on padding too.
        mask = None if batch.source_mask_BS is None else batch.source_mask_BS.long()
        outputs = model.model(input_ids=batch.source_BS, attention_mask=mask, decoder_input_ids=batch.target_BT)
        logits = model.lm_head(outputs.last_hidden_state[batch.real_BT]) + model.final_logits_bias
        return F.cross_entropy(logits, batch.labels_BT[batch.real_BT], label_smoothing=SIZE.smoothing)

    return Engine(
        f"transformers Marian {transformers.__version__}", model, in_one_piece(loss), build_plain_optimizer(model)
    )


if __name__ == "__main__":
    run(build)
