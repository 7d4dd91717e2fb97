"""The blocks of a stack, built from its record: the same for every Transformer family."""

from collections.abc import Mapping

from torch import nn

from saccade.arch.block import NO_MEMORY, BlockConfig
from saccade.arch.encoder_decoder import StackConfig
from saccade.nn.block import Block, Blocks
from saccade.nn.feedforward import FeedForward, GatedFeedForward
from saccade.nn.multihead import CrossAttention, SelfAttention
from saccade.nn.neighbours import ConvolutionModule
from saccade.nn.norms import RESIDUALS, Norm, norms
from saccade.nn.relative_bias import build_relative
from saccade.nn.rotary import build_rotary
from saccade.sites import Site


def build_blocks(config: BlockConfig, site: Site, memories: Mapping[str, int] = NO_MEMORY) -> Blocks:
    """`site` is what their self-attention says of itself; they also look at `memories` of these names and widths."""
    return Blocks(_block(config, site, config.window(layer), memories) for layer in range(config.layers))


def build_norm(config: BlockConfig) -> nn.Module:
    """A norm as the blocks have them."""
    return _norm(config)(config.width)


def last_norm(config: BlockConfig) -> nn.Module:
    """Pre-norm leaves the sum of all blocks unnormalised; one norm more closes the stack."""
    return build_norm(config) if config.order == "pre" else nn.Identity()


def _norm(config: BlockConfig) -> Norm:
    return norms(config.norm, config.epsilon)


def _block(config: BlockConfig, site: Site, window: int | None, memories: Mapping[str, int]) -> Block:
    rotary = build_rotary(config.positions, config.head_width)
    attention = SelfAttention(
        config.width,
        config.heads,
        key_heads=config.key_heads,
        rotary=rotary,
        window=window,
        relative=build_relative(config.positions, config.width, config.heads),
        bias=config.bias,
        site=site,
    )
    feedforward = GatedFeedForward if config.gated else FeedForward
    return Block(
        attention,
        feedforward(config.width, config.feedforward, config.activation, bias=config.bias),
        lambda: RESIDUALS[config.order](config.width, config.dropout, _norm(config)),
        {
            name: CrossAttention(config.width, config.heads, memory_width, rotary=rotary, memory=name)
            for name, memory_width in memories.items()
        },
        _convolution(config),
    )


def _convolution(config: BlockConfig) -> ConvolutionModule | None:
    if not isinstance(config, StackConfig) or not config.convolution:
        return None
    return ConvolutionModule(config.width, config.convolution, config.epsilon)
