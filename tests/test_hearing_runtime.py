"""Sounds on the runtimes: the kernels hear what plain NumPy hears; where they do not know the encoder, they write."""

import numpy as np
import pytest
import torch

from conftest import ancestor, on_kernels, on_plain, random_sequences, read_arrays
from saccade.arch.recurrent import RecurrentEncoderConfig
from saccade.arch.sound import SoundFrontEnd
from saccade.errors import UserError, WrongUse
from saccade.models.encdec import build_embedding
from saccade.models.rnn import RecurrentEncoder
from saccade.runtime.contract import ArrayMemory
from saccade.runtime.kernels import KernelDecoder, KernelEncoder
from saccade.runtime.open import choose_sequence
from saccade.runtime.plain import PlainEncoder
from saccade.runtime.recurrent import RecurrentReader
from saccade.sites import SOURCE

SOURCES = random_sequences([9, 3, 6])


@pytest.mark.parametrize("name", ["sound to transformer", "sound, conformer, to transformer"])
def test_the_kernels_hear_and_write_what_plain_numpy_does(name: str) -> None:
    model = ancestor(name)
    plain, fast = on_plain(model), on_kernels(model)
    known = "conformer" not in name
    assert isinstance(fast.encoders[SOURCE], KernelEncoder if known else PlainEncoder)
    assert isinstance(fast.decoder, KernelDecoder)
    assert ("plain NumPy reads" in fast.choice.why) != known
    memories = [read_arrays(runtime, SOURCES) for runtime in (plain, fast)]
    assert all(isinstance(memory, ArrayMemory) for memory in memories)
    expected, found = (memory.states_MSD for memory in memories)  # type: ignore[union-attr]
    real = memories[0].mask_MS  # type: ignore[union-attr]
    assert real is not None
    assert real.sum(axis=1).tolist() == [10, 4, 7], "a token or the end mark is a position"
    np.testing.assert_allclose(found[real], expected[real], atol=0.02)
    logits = []
    for runtime, memory in zip((plain, fast), memories, strict=True):
        state = runtime.decoder.start(memory)
        tokens = np.array([[1, 5, 6], [1, 7, 8], [1, 9, 3]])
        logits.append(runtime.decoder.extend(tokens, np.full(3, 3), state, every=True)[0])
    np.testing.assert_allclose(logits[1], logits[0], atol=0.05)


def test_what_falls_to_plain_is_named() -> None:
    pyramid = ancestor("sound, pyramid, to lstm").config
    assert choose_sequence(pyramid, None).engine == "plain"
    conformer = ancestor("sound, conformer, to transformer").config
    assert choose_sequence(conformer, "exact").engine == "plain"
    choice = choose_sequence(conformer, None)
    assert choice.engine == "plain" or "convolution = 5 of the encoder" in choice.why


def test_each_layer_of_a_pyramid_halves_what_is_read() -> None:
    """Also where it is odd: what is left over stands beside zeros, alone as in a batch."""
    config = RecurrentEncoderConfig.read({"cell": "lstm", "layers": 3, "pyramid": 2, "width": 8, "embed": 5}, where="x")
    encoder = RecurrentEncoder(config, build_embedding(config, 20)).eval()
    lengths = [11, 8, 5, 1]
    tokens = torch.tensor([row + [0] * (11 - len(row)) for row in random_sequences(lengths)])
    together = encoder(tokens, torch.arange(11) < torch.tensor(lengths)[:, None])
    assert together.mask_MS is not None
    assert together.mask_MS.sum(dim=1).tolist() == [3, 2, 2, 1]
    weights = {name: weight.detach().numpy() for name, weight in encoder.named_parameters()}
    reader = RecurrentReader(config, weights)
    for row, length in enumerate(lengths):
        alone = encoder(tokens[row : row + 1, :length])
        positions = alone.states_MSD.shape[1]
        torch.testing.assert_close(together.states_MSD[row, :positions], alone.states_MSD[0])
        torch.testing.assert_close(together.final[row], alone.final[0])
        np.testing.assert_allclose(
            reader(tokens[row : row + 1, :length].numpy()).states_MSD, alone.states_MSD.detach(), atol=1e-5
        )


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"layers": 2, "pyramid": 2}, "of 2 layers at most 1 can halve"),
        ({"layers": 2, "pyramid": 1, "front": {"height": 4, "width": 4, "patch": 2}}, "not front = 'patches'"),
    ],
)
def test_a_pyramid_that_cannot_be_is_refused(table: dict[str, object], words: str) -> None:
    with pytest.raises(WrongUse, match=words):
        RecurrentEncoderConfig.read(table, where="x")


def test_frames_of_another_kind_are_refused() -> None:
    with pytest.raises(UserError, match="frames of 40 energies were given to a model that reads 80"):
        SoundFrontEnd().check(40)
