"""Saccade: a model folder in the runtime's encoders, whose states `saccade classify`, `tag` and `fill` read."""

from pathlib import Path

from bench.measuring import read_arguments
from bench.readers.contract import (
    SIZES,
    VOCABULARY,
    Read,
    ReadTexts,
    measure_reader,
    padded_ways,
)
from saccade import __version__
from saccade.arch.bert import BertConfig
from saccade.folder import read_folder
from saccade.runtime.contract import Booleans, Floats, How, Ids
from saccade.runtime.kernels import KernelEncoder
from saccade.runtime.open import Choice, choose
from saccade.runtime.packing import BITS
from saccade.runtime.plain import PlainEncoder


def open_encoder(folder: Path, config: BertConfig, how: How | None) -> tuple[Choice, Read]:
    choice = choose((config,), how)
    weights = read_folder(folder / "saccade").tensors(config.weights(VOCABULARY))
    on_kernels = choice.engine == "kernels"
    encoder = KernelEncoder(config, weights, BITS[choice.how]) if on_kernels else PlainEncoder(config, weights)

    def read(tokens_BT: Ids, mask_BT: Booleans | None) -> Floats:
        return encoder(tokens_BT, mask_BT).states_MSD

    return choice, read


def mixed_ways(read: Read) -> dict[str, ReadTexts]:
    """How it reads texts of mixed length."""
    return padded_ways(read)


def main() -> None:
    given = read_arguments(SIZES, "folder", "how")
    how: How = given.how
    choice, read = open_encoder(Path(given.folder), SIZES[given.size], how)
    measure_reader(f"saccade {__version__}, {choice}", read, mixed_ways(read), given.calls)


if __name__ == "__main__":
    main()
