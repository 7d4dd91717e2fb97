"""Tensor parallelism: every matrix of a block shared among processes (Shoeybi et al. 2019, 3).

The first matrix of attention and of the feed-forward network is cut by columns of what it computes, the second by
rows, so that a block waits for the others twice forward and twice backward. Token vectors and the output layer are cut
by words. Norms and sums are whole everywhere.
"""

from collections.abc import Iterator
from typing import cast

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from saccade.nn.block import Block
from saccade.nn.embed import Embedding
from saccade.nn.multihead import CrossAttention, SelfAttention
from saccade.nn.stacked import Stacked
from saccade.train.shards import dealt
from saccade.train.vocabulary import DividedHead


def divide_matrices(model: nn.Module, mesh: DeviceMesh) -> tuple[dict[str, tuple[int, ...]], list[str]]:
    """Cut the matrices of all blocks, and the vocabulary, in place. The stacked matrices whose rows were dealt out, by
    name; and what was kept whole, to be told."""
    stacks = dict[str, tuple[int, ...]]()
    for name, block in model.named_modules():
        if isinstance(block, Block):
            for path, first, second in _pairs(name, block):
                stacks |= _divide_columns(path, first, mesh)
                if second is not None:
                    parallelize_module(second, mesh, RowwiseParallel())
            _share_heads(block, mesh.size())
    return stacks, _divide_vocabulary(model, mesh)


def _pairs(name: str, block: Block) -> Iterator[tuple[str, nn.Linear, nn.Linear | None]]:
    """What is cut by columns, by its path, and what is then cut by rows."""
    looks = {"self_attention": block.self_attention} | {
        child: look for child, look in block.named_children() if isinstance(look, CrossAttention)
    }
    for child, look in looks.items():
        yield f"{name}.{child}.project", look.project, look.out
        if isinstance(look, CrossAttention):
            yield f"{name}.{child}.query", look.query, None
    feedforward = block.feedforward
    widen, narrow = (cast(nn.Linear, getattr(feedforward, part)) for part in ("widen", "narrow"))
    yield f"{name}.feedforward.widen", widen, narrow


def _divide_columns(path: str, layer: nn.Linear, mesh: DeviceMesh) -> dict[str, tuple[int, ...]]:
    found = dict[str, tuple[int, ...]]()
    if isinstance(layer, Stacked):
        order = dealt(layer.sizes, mesh.size())
        for name, weight in layer.named_parameters():
            with torch.no_grad():
                weight.copy_(weight[order.to(weight.device)])
            found[f"{path}.{name}"] = layer.sizes
        layer.sizes = tuple(size // mesh.size() for size in layer.sizes)
    parallelize_module(layer, mesh, ColwiseParallel())
    return found


def _share_heads(block: Block, parts: int) -> None:
    """Each process computes its share of the heads."""
    for look in block.children():
        if isinstance(look, SelfAttention):
            look.heads, look.key_heads = look.heads // parts, look.key_heads // parts
            look.sizes = [size // parts for size in look.sizes]
        elif isinstance(look, CrossAttention):
            look.heads //= parts


def _divide_vocabulary(model: nn.Module, mesh: DeviceMesh) -> list[str]:
    tables = {id(table): table for table in _token_tables(model)}
    sizes = {table.num_embeddings for table in tables.values()}
    if any(size % mesh.size() for size in sizes):
        size = next(size for size in sizes if size % mesh.size())
        return [f"a vocabulary of {size:,} does not divide by {mesh.size()}: token vectors and output layer stay whole"]
    heads = [
        (parent, head)
        for parent in model.modules()
        for name, head in parent.named_children()
        if name == "head" and isinstance(head, nn.Linear) and head.out_features in sizes
    ]
    tied = {id(head): next((t for t in tables.values() if t.weight is head.weight), None) for _, head in heads}
    for table in tables.values():
        parallelize_module(table, mesh, RowwiseParallel(input_layouts=Replicate()))
    for parent, head in heads:
        shared = tied[id(head)]
        weight = (
            _by_words(cast(nn.Parameter, head.weight), mesh) if shared is None else cast(nn.Parameter, shared.weight)
        )
        bias = None if head.bias is None else _by_words(head.bias, mesh)
        parent.head = DividedHead(head, weight, bias, mesh)
    return []


def _by_words(weight: nn.Parameter, mesh: DeviceMesh) -> nn.Parameter:
    return nn.Parameter(distribute_tensor(weight, mesh, [Shard(0)]), requires_grad=weight.requires_grad)


def _token_tables(model: nn.Module) -> Iterator[nn.Embedding]:
    for module in model.modules():
        tokens = getattr(module, "tokens", None)
        if isinstance(tokens, nn.Embedding) and (isinstance(module, Embedding) or hasattr(module, "segments")):
            yield tokens
