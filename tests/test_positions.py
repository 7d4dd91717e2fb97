"""Positions: the paper's formula in both layouts, learned vectors, none at all, and positions beside the token."""

import math

import pytest
import torch
from torch import Tensor

from conftest import random_tokens_BT, small_model
from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.positions import LearnedConfig, NoPositionsConfig, PositionsConfig, SinusoidalConfig
from saccade.errors import WrongUse
from saccade.nn.embed import Embedding
from saccade.nn.positions import Learned, Sinusoidal


def paper_formula(position: int, width: int) -> list[float]:
    """PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(p / 10000^(2i/d))."""
    channels = []
    for i in range(width // 2):
        angle = position / 10_000 ** (2 * i / width)
        channels += [math.sin(angle), math.cos(angle)]
    return channels


def encode(encoding: Sinusoidal, positions: list[int]) -> Tensor:
    result: Tensor = encoding(torch.tensor(positions), max(positions))
    return result


@pytest.mark.parametrize("width", [2, 8, 64])
def test_interleaved_is_the_formula_of_the_paper(width: int) -> None:
    positions = [0, 1, 2, 17, 300, 511]
    expected = torch.tensor([paper_formula(p, width) for p in positions])
    torch.testing.assert_close(encode(Sinusoidal(width), positions), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("positions", [[3, 100, 511], [3, 600]], ids=["ready", "computed"])
def test_halves_are_the_same_channels_in_another_order(positions: list[int]) -> None:
    interleaved = encode(Sinusoidal(12), positions)
    halves = encode(Sinusoidal(12, "halves"), positions)
    order = [*range(0, 12, 2), *range(1, 12, 2)]
    assert torch.equal(halves, interleaved[:, order])
    assert not torch.equal(halves, interleaved)


@pytest.mark.parametrize("position", [512, 513, 1000, 5000])
def test_the_formula_goes_on_past_the_rows_made_ready(position: int) -> None:
    # Sines of large angles lose digits in float32: an angle of 5000 is known to 5e-4.
    expected = torch.tensor([paper_formula(position, 16)])
    torch.testing.assert_close(encode(Sinusoidal(16), [position]), expected, atol=2e-3, rtol=0)


def test_rows_made_ready_equal_rows_computed() -> None:
    encoding = Sinusoidal(16)
    # One late position sends all of them through the formula instead of the table.
    torch.testing.assert_close(encode(encoding, [0, 7, 511, 512])[:3], encode(encoding, [0, 7, 511]))


def test_how_alike_two_positions_are_depends_on_their_distance_alone() -> None:
    table_PD = Sinusoidal(64).table
    for distance in (1, 5, 20):
        alike_P = (table_PD[:-distance] * table_PD[distance:]).sum(-1)
        torch.testing.assert_close(alike_P, alike_P[:1].expand_as(alike_P), atol=1e-3, rtol=0)


def test_learned_positions_are_rows_and_a_position_too_far_is_refused_with_both_numbers() -> None:
    learned = Learned(4, length=6)
    at = torch.tensor([[5, 0], [2, 2]])
    assert torch.equal(learned(at, 5), learned.vectors.weight[at])
    with pytest.raises(ValueError, match=r"position 6 .* 6 learned"):
        learned(torch.tensor([6]), 6)


def test_without_positions_an_encoder_sees_a_bag_of_words() -> None:
    source_MS = random_tokens_BT(2, 7)
    order = torch.tensor([4, 0, 6, 2, 1, 5, 3])
    encoder = small_model(positions=NoPositionsConfig()).encoder
    moved = encoder(source_MS[:, order]).states_MSD
    torch.testing.assert_close(moved, encoder(source_MS).states_MSD[:, order], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("combine", ["add", "concatenate"])
@pytest.mark.parametrize("positions", [SinusoidalConfig(), LearnedConfig(length=9)], ids=lambda config: config.kind)
def test_positions_tell_one_order_from_another(positions: PositionsConfig, combine: str) -> None:
    source_MS = random_tokens_BT(2, 7)
    order = torch.tensor([4, 0, 6, 2, 1, 5, 3])
    encoder = small_model(positions=positions, combine=combine).encoder
    moved, stayed = encoder(source_MS[:, order]).states_MSD, encoder(source_MS).states_MSD[:, order]
    assert (moved - stayed).abs().max() > 1e-2


def test_added_positions_are_added_to_the_scaled_token() -> None:
    embedding = Embedding(20, 8, SinusoidalConfig(), concatenate=False, dropout=0.0)
    tokens_BT = random_tokens_BT(3, 5)
    expected = embedding.tokens.weight[tokens_BT] * math.sqrt(8) + Sinusoidal(8).table[:5]
    torch.testing.assert_close(embedding(tokens_BT), expected)
    # Rows that begin elsewhere, as in decoding, stand elsewhere.
    later = embedding(tokens_BT, torch.tensor([0, 3, 40]), last=44) - embedding.tokens.weight[tokens_BT] * math.sqrt(8)
    torch.testing.assert_close(later[2], Sinusoidal(8).table[40:45])


@pytest.mark.parametrize("positions", [SinusoidalConfig(), LearnedConfig(length=9)], ids=lambda config: config.kind)
def test_concatenated_positions_stand_beside_the_token(positions: PositionsConfig) -> None:
    embedding = Embedding(20, 8, positions, concatenate=True, dropout=0.0)
    tokens_BT = random_tokens_BT(3, 5)
    what, where = embedding(tokens_BT).chunk(2, dim=-1)
    torch.testing.assert_close(what, embedding.tokens.weight[tokens_BT] * math.sqrt(4))
    assert torch.equal(where, where[:1].expand_as(where)), "the same in every row"
    assert not torch.equal(where[:, 0], where[:, 1]), "another at every position"


def test_concatenated_positions_make_a_whole_model_when_nothing_is_tied() -> None:
    model = small_model(combine="concatenate", tie="none", vocabulary=20)
    logits_BTV = model(random_tokens_BT(2, 6), None, random_tokens_BT(2, 4))
    assert logits_BTV.shape == (2, 4, 20)


@pytest.mark.parametrize("tie", ["all", "decoder"])
def test_concatenated_positions_cannot_be_tied_and_the_message_says_what_to_do(tie: str) -> None:
    stack = {"combine": "concatenate"}
    with pytest.raises(WrongUse, match="use tie = 'none'"):
        EncoderDecoderConfig.read({"encoder": stack, "decoder": stack, "tie": tie}, where="recipe")


def test_an_odd_width_has_no_sines_and_cosines() -> None:
    with pytest.raises(ValueError, match="even width, not 7"):
        Sinusoidal(7)
