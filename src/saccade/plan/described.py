"""What is planned where it is no preset: a recipe's model, or that of a model folder."""

from collections.abc import Mapping
from typing import Any

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.gpt import GptConfig
from saccade.arch.heads import ClassHead, EncoderModel, WordsHead
from saccade.config import Table
from saccade.errors import WrongUse
from saccade.plan.subject import Subject
from saccade.presets.preset import AnyModel, Trained

SENTENCE = 25
"""Tokens of a side of a pair, where nothing is said: Vaswani et al. 2017 have 25,000 in a thousand pairs."""
BYTES = 259
"""Bytes and marks, where a vocabulary is not learnt."""


def recipe_subject(name: str, table: Table) -> Subject:
    """The model of a recipe, and how long it is trained."""
    task, model = str(table.get("task", "")), table.get("model", {})
    if table.get("init"):
        raise WrongUse(f"{name} starts from {table['init']!r}, which brings its sizes: saccade plan {table['init']}")
    described = described_model(task, model, table, where=name)
    train, tokens = table.get("train", {}), table.get("tokens", {})
    sides = 2 if isinstance(described, EncoderDecoderConfig) else 1
    context = _context(described)
    texts = train.get("batch_tokens", 2048) * (context if task == "pictures" else 1)
    batch = float(sides * texts * train.get("accumulate", 1))
    trained = Trained(tokens=batch * train.get("steps", 0), batch_tokens=batch, device="cpu", told_by="recipe")
    vocabulary = BYTES if tokens.get("kind") == "bytes" else int(tokens.get("vocabulary", 8000))
    extra = int(isinstance(described, EncoderModel))  # the mask
    return Subject(name, f"{name}, a recipe for {task}", described, vocabulary + extra, context, trained)


def described_model(task: str, model: Table, table: Mapping[str, Any], *, where: str) -> AnyModel:
    """The record of a task's model."""
    if task == "language":
        return GptConfig.read(model, where=where)
    if task in ("masked", "pictures"):
        words = WordsHead(next_sentence=bool(table.get("next_sentence", False)))
        head = words if task == "masked" else ClassHead(outputs=10, pooling=table.get("pooling", "mean"))
        kind = "bert" if task == "masked" else "transformer"
        return EncoderModel.read({"encoder": {"kind": kind} | model, "head": head.table()}, where=where)
    if task in ("classification", "tagging"):
        return EncoderModel.read({"encoder": model, "head": {"outputs": 2, "pooling": "dense"}}, where=where)
    return EncoderDecoderConfig.read(model, where=where)


def folder_subject(name: str, model: AnyModel, vocabulary: int) -> Subject:
    """The model of a folder, as its pipeline has read it."""
    extra = int(isinstance(model, EncoderModel))
    return Subject(name, name, model, vocabulary + extra, _context(model), Trained(device="cpu"))


def _context(model: AnyModel) -> int:
    return SENTENCE if isinstance(model, EncoderDecoderConfig) else model.context
