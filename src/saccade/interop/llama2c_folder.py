"""A llama2.c model as one of Saccade's: its weights under our names, and the model folder written from it."""

import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import ACCESS_COPY, mmap
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from saccade.arch.gpt import GptConfig
from saccade.errors import UserError, WrongUse
from saccade.files import open_regular
from saccade.folder import Storage, write_card
from saccade.interop.llama2c import Content, Llama, read_llama2c, read_llama2c_tokenizer
from saccade.models.gpt import LanguageModel, build_gpt
from saccade.nn.rotary import Rotary
from saccade.tokens.marks import Marks
from saccade.tokens.vocabulary import read_vocabulary
from saccade.weights import write_folder

FILES = ("README.md", "model.safetensors", "tokenizer.json", "config.json")
LARGEST_HALF = 65504
"""The largest number float16 has."""


def import_llama2c(model: Path, tokenizer: Path | None, out: Path, *, name: str, storage: Storage) -> Llama:
    """Write the model folder of a llama2.c file; the tokenizer is the rest of that file or a file of its own."""
    _insist_on_room(out)
    content = _mapped(model)
    llama, rest = read_llama2c(content, str(model))
    if tokenizer is None and not rest:
        raise WrongUse(f"{model}: holds a model and no tokenizer; give its tokenizer.bin: --tokenizer FILE")
    if tokenizer is not None and rest:
        raise WrongUse(f"{model}: {len(rest):,} bytes follow the model, its own tokenizer; leave out --tokenizer")
    where = tokenizer or model
    pieces = read_llama2c_tokenizer(rest or _mapped(where), llama.vocabulary, str(where)).to_str()
    # What this version would not read again is not written.
    marks = read_vocabulary(pieces, where, spaced=False).marks
    _insist_on_finite(llama, storage, model)
    config, language_model = to_language_model(llama, marks, str(model))
    table = {
        "task": "language",
        "name": name,
        "marks": marks.table(),
        "model": config.table(),
        "data": {},
        "marked": True,
    }
    with _whole_or_nothing(out):
        write_card(out, _card(name, llama, model, content, storage))
        write_folder(out, table, language_model, pieces, storage=storage)
    return llama


def to_language_model(llama: Llama, marks: Marks, where: str) -> tuple[GptConfig, LanguageModel]:
    """The same model in our parts; of its weights, only what changes its place in memory is copied."""
    config = GptConfig.read(
        {
            "layers": llama.layers,
            "width": llama.width,
            "heads": llama.heads,
            "key_heads": llama.key_heads,
            "hidden": llama.hidden,
            "feedforward": "gated",
            "activation": "silu",
            "norm": "rms",
            "bias": False,
            "context": llama.context,
            "positions": {"kind": "rotary", "layout": "interleaved"},
            "tie": False,
        },
        where=where,
    )
    # On this device nothing has numbers, so none are drawn that would be thrown away.
    with torch.device("meta"):
        model = build_gpt(config, llama.vocabulary)
    model.load_state_dict(_weights(llama, marks), assign=True)
    for block in model.decoder.blocks:
        # Its angles are no weights, and have no numbers yet.
        block.self_attention.rotary = Rotary(llama.width // llama.heads)
    return config, model.eval()


def _weights(llama: Llama, marks: Marks) -> dict[str, Tensor]:
    theirs = {name: torch.from_numpy(weight) for name, weight in llama.weights.items()}
    ours = {"embed.tokens.weight": theirs["token_embedding"], "norm.weight": theirs["final_norm"]}
    for i in range(llama.layers):
        layer = {
            "around_self.norm": theirs["attention_norm"][i],
            "self_attention.project": torch.cat([theirs[name][i] for name in ("wq", "wk", "wv")]),
            "self_attention.out": theirs["wo"][i],
            "around_feedforward.norm": theirs["feedforward_norm"][i],
            # The gate is the first half.
            "feedforward.widen": torch.cat([theirs[name][i] for name in ("w1", "w3")]),
            "feedforward.narrow": theirs["w2"][i],
        }
        ours |= {f"blocks.{i}.{name}.weight": weight for name, weight in layer.items()}
    # Its texts follow each other with <s> between them, and llama2.c stops there. Ours end with </s>, and no <s> is
    # ever written: the two change places among what is predicted, while what is read begins with <s> as before.
    head_VD = theirs.get("head", theirs["token_embedding"]).clone()
    head_VD[[marks.begin, marks.end]] = head_VD[[marks.end, marks.begin]]
    return {f"decoder.{name}": weight for name, weight in (ours | {"head.weight": head_VD}).items()}


def _insist_on_room(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise WrongUse(f"{out} is a file; choose another --out")
    if out.is_dir() and any(out.iterdir()):
        raise WrongUse(f"{out} is not empty; choose another --out")


def _mapped(file: Path) -> Content:
    """The content of a file, which the system reads as it is needed; changes stay in memory."""
    try:
        with open_regular(file) as opened:
            return mmap(opened.fileno(), 0, access=ACCESS_COPY) if file.stat().st_size else b""
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or error}") from None


def _insist_on_finite(llama: Llama, storage: Storage, where: Path) -> None:
    for name, weight in llama.weights.items():
        largest = float(np.maximum(weight.max(), -weight.min()))
        if not math.isfinite(largest):
            raise UserError(f"{where}: its {name} holds NaN or infinite numbers")
        if storage != "float32" and largest > LARGEST_HALF:
            raise UserError(
                f"{where}: its {name} reaches {largest:.6g}, but float16 ends at {LARGEST_HALF}; use --storage float32"
            )


@contextmanager
def _whole_or_nothing(out: Path) -> Iterator[None]:
    """A folder that could not be written to its end goes; one that was there stays, as empty as it was."""
    there = out.is_dir()
    try:
        yield
    except BaseException:
        if out.is_dir():
            for name in FILES:
                (out / name).unlink(missing_ok=True)
                (out / f".writing-{name}").unlink(missing_ok=True)
            if not there and not any(out.iterdir()):
                out.rmdir()
        raise


def _card(name: str, llama: Llama, file: Path, content: Content, storage: Storage) -> str:
    parameters = sum(weight.size for weight in llama.weights.values())
    lines = [
        f"# {name}",
        "",
        "A language model imported from a llama2.c file (github.com/karpathy/llama2.c).",
        "",
        "- task: language",
        f"- parameters: {parameters:,} in the file; the output layer is stored apart from the token vectors, for in it",
        "  `<s>` and `</s>` have changed places: in llama2.c a text ends where the `<s>` of the next one stands",
        f"- model: {llama.layers} layers, {llama.width} wide, {llama.hidden} hidden, {llama.heads} heads, "
        f"{llama.key_heads} of keys and values",
        f"- vocabulary: {llama.vocabulary:,}; context: {llama.context:,} tokens",
        f"- imported from: {' '.join(file.name.split())}, {len(content):,} bytes, SHA-256 "
        f"{hashlib.sha256(content).hexdigest()}",
        f"- stored as: {storage}",
        "- test: not measured",
        "- licence of the weights: not stated in the file; it is that of whoever trained them",
    ]
    return "\n".join(lines) + "\n"
