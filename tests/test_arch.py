"""One description of every model: the tensors that a record lists are those that PyTorch builds, counted exactly."""

from typing import Any

import pytest
import torch

from conftest import ANCESTORS
from saccade.arch.bert import BertConfig
from saccade.arch.block import BlockConfig
from saccade.arch.encoder_decoder import EncoderDecoderConfig, StackConfig
from saccade.arch.gpt import GptConfig
from saccade.arch.heads import ClassHead, EncoderModel, TagsHead, WordsHead
from saccade.arch.weights import flops, parameters, parameters_by_part, stored
from saccade.arch.xlnet import XlnetConfig
from saccade.models.encdec import build_encoder_decoder
from saccade.models.encoders import build_encoder_model
from saccade.models.gpt import build_gpt
from tiny import GPTS, gpt_config

VOCABULARY = 20
SMALL = {"layers": 2, "width": 16, "heads": 2, "feedforward": 24}
LATER = {"norm": "rms", "gated": True, "activation": "silu", "key_heads": 1, "bias": False}
STACKS: dict[str, dict[str, Any]] = {
    "paper": {"order": "post"},
    "pre-norm": {},
    "learned positions": {"positions": {"kind": "learned", "length": 9}},
    "rotary": {"positions": {"kind": "rotary"}},
    "concatenated": {"combine": "concatenate"},
    "later parts": LATER,
}
BERTS: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {"segments": 0, "epsilon": 1e-5},
    "pre-norm, rotary": {"order": "pre", "positions": {"kind": "rotary"}},
    "later parts": LATER,
}
HEADS = [WordsHead(), WordsHead(next_sentence=True), ClassHead(outputs=3), TagsHead(outputs=5)]


def shapes(model: torch.nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(weight.shape) for name, weight in model.named_parameters()}


@pytest.mark.parametrize("tie", ["all", "decoder", "none"])
@pytest.mark.parametrize("name", [*STACKS, *ANCESTORS])
def test_an_encoder_and_decoder_have_the_listed_tensors(name: str, tie: str) -> None:
    table = ANCESTORS.get(name) or dict.fromkeys(("encoder", "decoder"), SMALL | STACKS[name])
    if name == "concatenated" and tie != "none":
        pytest.skip("half as wide, token vectors cannot be tied")
    config = EncoderDecoderConfig.read(table | {"tie": "none"}, where=name)
    if tie == "all" and any(reader.embed != config.decoder.embed for reader in config.token_readers.values()):
        pytest.skip("token vectors of other widths cannot be one matrix")
    config = EncoderDecoderConfig.read(table | {"tie": tie}, where=name)
    model = build_encoder_decoder(config, VOCABULARY)
    described = config.weights(VOCABULARY)
    assert stored(described) == shapes(model)
    assert parameters(described) == sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    whole = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    assert described.keys() == whole, "tied matrices are listed under all their names"
    for key, weight in described.items():
        if weight.same_as:
            assert model.get_parameter(key) is model.get_parameter(weight.same_as)


@pytest.mark.parametrize("name", GPTS)
def test_a_language_model_has_the_listed_tensors(name: str) -> None:
    config = gpt_config(name)
    assert stored(config.weights(VOCABULARY)) == shapes(build_gpt(config, VOCABULARY))


@pytest.mark.parametrize("head", HEADS, ids=repr)
@pytest.mark.parametrize("name", [*BERTS, "xlnet"])
def test_an_encoder_with_a_head_has_the_listed_tensors(name: str, head: Any) -> None:
    encoder = XlnetConfig(**SMALL) if name == "xlnet" else BertConfig.read(SMALL | BERTS[name], where=name)
    if name == "xlnet" and head == WordsHead(next_sentence=True):
        pytest.skip("XLNet guesses words alone")
    config = EncoderModel(encoder=encoder, head=head)
    assert stored(config.weights(VOCABULARY)) == shapes(build_encoder_model(config, VOCABULARY))


@pytest.mark.parametrize(
    ("config", "vocabulary", "count"),
    [
        (GptConfig(layers=48, width=1600, heads=25, feedforward=6400, context=1024), 50_257, 1_557_611_200),
        (GptConfig(layers=96, width=12288, heads=96, feedforward=49152, context=2048), 50_257, 174_604_259_328),
        (GptConfig(layers=72, width=3072, heads=32, feedforward=12288, context=1024), 51_200, 8_317_040_640),
    ],
    ids=["GPT-2 XL", "GPT-3", "Megatron-LM"],
)
def test_published_sizes_are_counted_exactly(config: GptConfig, vocabulary: int, count: int) -> None:
    assert parameters(config.weights(vocabulary)) == count


def test_the_paper_and_bert_are_counted_exactly() -> None:
    stack = StackConfig(layers=6, width=512, heads=8, feedforward=2048, order="post")
    transformer = EncoderDecoderConfig(encoder=stack, decoder=stack).weights(37_000)
    assert parameters(transformer) == 63_082_496
    bert = BertConfig(layers=12, width=768, heads=12, feedforward=3072).weights(30_522)
    pooler = 768 * 768 + 768
    assert parameters(bert) + pooler == 109_482_240


def test_parts_add_up_to_the_whole() -> None:
    weights = EncoderDecoderConfig().weights(8000)
    parts = parameters_by_part(weights)
    assert sum(parts.values()) == parameters(weights)
    assert parts["encoder.embed"] == 8000 * 256


def test_a_product_costs_two_operations_for_each_weight_and_token() -> None:
    config = GptConfig(layers=2, width=16, heads=2, feedforward=24, context=8)
    matrices = 2 * (4 * 16 * 16 + 2 * 16 * 24) + VOCABULARY * 16
    assert flops(config.weights(VOCABULARY), {"target": 7}) == 2 * 7 * matrices


def test_keys_and_values_take_what_the_state_takes() -> None:
    config = BlockConfig(layers=4, width=64, heads=8, key_heads=2, windows=(0, 5))
    each = 2 * 2 * 8 * 4
    assert config.cache_bytes(12) == each * (2 * 12 + 2 * 5)
    assert config.cache_bytes(12, number=2) == config.cache_bytes(12) // 2
    assert config.activation_bytes(20) > 2 * config.activation_bytes(10), "attention weights grow with the square"
