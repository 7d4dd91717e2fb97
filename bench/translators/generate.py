"""Marian as Hugging Face transformers has it, by `generate`; its norms stand elsewhere, so its weights are its own."""

import torch
import transformers

from bench.translators.contract import SIZES, TARGET, Sentences, Size, Translate, read_arguments, time_cells
from saccade.tokens.bpe import BEGIN, END, PAD


def build(size: Size) -> transformers.MarianMTModel:
    config = transformers.MarianConfig(
        vocab_size=size.vocabulary,
        d_model=size.width,
        encoder_layers=size.layers,
        decoder_layers=size.layers,
        encoder_attention_heads=size.heads,
        decoder_attention_heads=size.heads,
        encoder_ffn_dim=size.hidden,
        decoder_ffn_dim=size.hidden,
        activation_function="relu",
        max_position_embeddings=512,
        scale_embedding=True,
        use_cache=True,
        pad_token_id=PAD,
        eos_token_id=END,
        decoder_start_token_id=BEGIN,
        forced_eos_token_id=None,
    )
    return transformers.MarianMTModel(config).eval()


def translator(model: transformers.MarianMTModel) -> Translate:
    def translate(sources: Sentences, width: int) -> Sentences:
        source_BS = torch.tensor(sources)
        with torch.inference_mode():
            written_BT = model.generate(
                input_ids=source_BS,
                attention_mask=torch.ones_like(source_BS),
                num_beams=width,
                do_sample=False,
                use_cache=True,
                min_new_tokens=TARGET,
                max_new_tokens=TARGET,
            )
        return [text[1:] for text in written_BT.tolist()]  # its first token is the begin mark

    return translate


def main() -> None:
    given = read_arguments()
    torch.manual_seed(1)
    transformers.logging.set_verbosity_error()
    size = SIZES[given.size]
    title = f"transformers generate {transformers.__version__}, threads: {given.threads}"
    time_cells(title, size, translator(build(size)), given.calls)


if __name__ == "__main__":
    main()
