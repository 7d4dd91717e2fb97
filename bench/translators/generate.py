"""Marian as Hugging Face transformers has it, by `generate`; its norms stand elsewhere, so its weights are its own."""

from dataclasses import asdict

import torch
import transformers

from bench.marian import build_marian
from bench.translators.contract import MARKS, SIZES, TARGET, Sentences, Translate, read_arguments, time_cells


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
    model = build_marian(**asdict(size), marks=MARKS, dropout=0.0, use_cache=True).eval()
    time_cells(title, size, translator(model), given.calls)


if __name__ == "__main__":
    main()
