"""Hugging Face transformers by `generate`, on a folder that `bench.writers.same` wrote from Saccade's weights."""

from pathlib import Path
from typing import Any

import torch
import transformers

from bench.measuring import read_arguments
from bench.resident import resident
from bench.writers.contract import SHAPES, Prompts, Write, measure_writer


def open_model(folder: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(folder / "transformers", dtype=torch.float32).eval()


def writer(model: Any) -> Write:
    def write(prompts: Prompts, count: int) -> Prompts:
        tokens_BT = torch.tensor(prompts)
        with torch.inference_mode():
            written_BT = model.generate(
                input_ids=tokens_BT,
                attention_mask=torch.ones_like(tokens_BT),
                do_sample=False,
                use_cache=True,
                min_new_tokens=count,
                max_new_tokens=count,
            )
        return [text[tokens_BT.shape[1] :] for text in written_BT.tolist()]

    return write


def main() -> None:
    given = read_arguments(SHAPES, "folder")
    torch.set_num_threads(given.threads)
    transformers.logging.set_verbosity_error()
    before = resident()
    title = f"transformers generate {transformers.__version__}, threads: {given.threads}"
    measure_writer(title, SHAPES[given.size], writer(open_model(Path(given.folder))), given.calls, before)


if __name__ == "__main__":
    main()
