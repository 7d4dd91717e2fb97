"""The world of docs/acting.md, and an untrained agent of its sizes."""

import re
from pathlib import Path
from typing import Any

import torch

from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.models.encdec import EncoderDecoder, build_encoder_decoder
from saccade.tokens.vocabulary import TokensConfig, train_vocabulary
from saccade.weights import write_folder
from saccade.worlds.babyai import ACTIONS

DOCS = Path(__file__).parent.parent / "docs" / "acting.md"
COMMANDS = "go to the a red green blue purple yellow grey ball box key pick up on your left right"
WORDS = sorted(COMMANDS.split())
SIZES: dict[str, Any] = {
    "tie": "none",
    "encoders": {
        "command": {"kind": "recurrent", "width": 16, "embed": 16, "dropout": 0.0},
        "world": {
            "kind": "transformer",
            "layers": 1,
            "width": 16,
            "heads": 2,
            "feedforward": 32,
            "dropout": 0.0,
            "front": {"kind": "patches", "height": 56, "width": 56, "channels": 3, "patch": 8},
        },
    },
    "decoder": {"kind": "recurrent", "width": 16, "embed": 16, "dropout": 0.0},
}


def documented_world() -> tuple[dict[str, Any], str]:
    """What the program in the docs defines, and the rest of it, which trains and acts."""
    (program,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    before, add, rest = program.partition("add_world(")
    assert add
    names: dict[str, Any] = {}
    exec(before, names)
    return names, add + rest


def untrained(seed: int = 0) -> tuple[EncoderDecoder, Any]:
    """A model with weights large enough to make a difference, and its vocabulary."""
    vocabulary = train_vocabulary(TokensConfig(kind="words"), [" ".join(WORDS), " ".join(ACTIONS)])
    torch.manual_seed(seed)
    model = build_encoder_decoder(EncoderDecoderConfig.read(SIZES, where="toy"), len(vocabulary))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2.0).add_(0.1 * torch.randn_like(weight))
    return model.eval(), vocabulary


def write_agent(path: Path) -> Path:
    """A model folder for BabyAI's worlds that was never trained."""
    model, vocabulary = untrained()
    table = {
        "task": "acting",
        "name": "untrained",
        "model": model.config.table(),
        "words": WORDS,
        "actions": list(ACTIONS),
        "data": {"levels": [{"name": "BabyAI-GoToObj-v0", "worlds": 10}], "test": 5},
    }
    write_folder(path, table, model, vocabulary.tokenizer.to_str(), storage="float32")
    return path
