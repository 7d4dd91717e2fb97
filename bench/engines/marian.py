"""Marian as Hugging Face transformers has it, in a plain loop."""

import torch.nn.functional as F
import transformers
from torch import Tensor

from bench.engines.contract import SIZE, Batch, Engine, build_plain_optimizer, run


def build(vocabulary: int, pad: int) -> Engine:
    config = transformers.MarianConfig(
        vocab_size=vocabulary,
        d_model=SIZE.width,
        encoder_layers=SIZE.layers,
        decoder_layers=SIZE.layers,
        encoder_attention_heads=SIZE.heads,
        decoder_attention_heads=SIZE.heads,
        encoder_ffn_dim=SIZE.hidden,
        decoder_ffn_dim=SIZE.hidden,
        dropout=SIZE.dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function="relu",
        max_position_embeddings=512,
        scale_embedding=True,
        use_cache=False,
        pad_token_id=pad,
        eos_token_id=pad + 2,
        decoder_start_token_id=pad + 1,
        forced_eos_token_id=None,
    )
    model = transformers.MarianMTModel(config)

    def loss(batch: Batch) -> Tensor:
        # Its own `labels=` argument would compute the output layer on padding too.
        mask = None if batch.source_mask_BS is None else batch.source_mask_BS.long()
        outputs = model.model(input_ids=batch.source_BS, attention_mask=mask, decoder_input_ids=batch.target_BT)
        logits = model.lm_head(outputs.last_hidden_state[batch.real_BT]) + model.final_logits_bias
        return F.cross_entropy(logits, batch.labels_BT[batch.real_BT], label_smoothing=SIZE.smoothing)

    return Engine(f"transformers Marian {transformers.__version__}", model, loss, build_plain_optimizer(model))


if __name__ == "__main__":
    run(build)
