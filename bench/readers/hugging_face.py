"""Hugging Face's BertModel, on a folder that `bench.readers.same` wrote from Saccade's weights."""

from pathlib import Path

import torch
import transformers

from bench.measuring import read_arguments
from bench.readers.contract import SIZES, Read, measure_reader, padded_ways
from saccade.runtime.contract import Booleans, Floats, Ids


def open_encoder(folder: Path) -> Read:
    model = transformers.BertModel.from_pretrained(
        folder / "transformers", add_pooling_layer=False, attn_implementation="sdpa", dtype=torch.float32
    ).eval()

    def read(tokens_BT: Ids, mask_BT: Booleans | None) -> Floats:
        mask = None if mask_BT is None else torch.from_numpy(mask_BT).long()
        with torch.inference_mode():
            found = model(input_ids=torch.from_numpy(tokens_BT), attention_mask=mask)
        states_BTD: Floats = found.last_hidden_state.numpy()
        return states_BTD

    return read


def main() -> None:
    given = read_arguments(SIZES, "folder")
    torch.set_num_threads(given.threads)
    transformers.logging.set_verbosity_error()
    read = open_encoder(Path(given.folder))
    title = f"transformers {transformers.__version__}, sdpa, threads: {given.threads}"
    measure_reader(title, read, padded_ways(read), given.calls)


if __name__ == "__main__":
    main()
