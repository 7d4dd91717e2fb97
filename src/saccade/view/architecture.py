"""The parts of a model, from its `arch/` record: what stands on what, its formula and its sizes, for the page."""

from typing import Any

from saccade.arch.bert import BertConfig
from saccade.arch.block import BlockConfig
from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.front_end import TokensFrontEnd
from saccade.arch.gpt import GptConfig
from saccade.arch.heads import EncoderModel
from saccade.arch.memories import named
from saccade.arch.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig

Values = dict[str, Any]
NORMS = {
    "layer": "norm(x) = (x − mean) / √(variance + ε) · gain + shift",
    "rms": "norm(x) = x / √(mean of x² + ε) · gain",
}
SCORES = {
    "additive": "score(q, k) = energyᵀ tanh(W q + U k)",
    "dot": "score(q, k) = q · k",
    "general": "score(q, k) = q · W k",
    "scaled-dot": "score(q, k) = q · k / √H",
}


def parts_of(config: Any) -> list[Values]:
    """Stacks from the input to the output, each with its parts in the order data meets them."""
    match config:
        case EncoderDecoderConfig():
            memories = list(config.readers)
            readers = [_encoder(reader, memory) for memory, reader in config.readers.items()]
            return [*readers, _decoder(config.decoder, memories)]
        case GptConfig():
            return [_decoder(config, [])]
        case EncoderModel():
            found = [_encoder(config.encoder, "source")]
            head = config.head
            outputs = getattr(head, "outputs", None)
            kind = type(head).__name__.removesuffix("Head").lower()
            shape = f" → {outputs}" if outputs else ""
            part = _part("head", f"what is said: {kind}", "p = softmax(W x + b)", f"{_width(config.encoder)}{shape}")
            return [*found, {"name": "head", "title": "Head", "parts": [part]}]
    return []


def _width(config: Any) -> int:
    return int(getattr(config, "width", getattr(config, "hidden", 0)) or 0)


def _called(memory: str) -> str:
    return "input" if memory == "source" else memory


def _part(kind: str, title: str, formula: str, shape: str = "", site: str = "") -> Values:
    return {"kind": kind, "title": title, "formula": formula, "shape": shape, "site": site}


def _encoder(config: Any, memory: str) -> Values:
    name = named("encoder", memory)
    parts = [_embedding(config)]
    if isinstance(config, BlockConfig):
        for layer in range(config.layers):
            parts += _block(config, f"{name}.blocks.{layer}", layer, [], written=False)
    elif isinstance(config, RecurrentEncoderConfig):
        both = ", in both directions" if len(config.backwards) > 1 else ""
        parts.append(_recurrent(config, f"{config.cell}{both}"))
    title = "Encoder" if memory == "source" else f"Encoder of the {memory}"
    return {"name": name, "title": title, "parts": parts}


def _decoder(config: Any, memories: list[str]) -> Values:
    parts = [_embedding(config)]
    if isinstance(config, BlockConfig):
        for layer in range(config.layers):
            parts += _block(config, f"decoder.blocks.{layer}", layer, memories, written=True)
    elif isinstance(config, RecurrentDecoderConfig):
        parts.append(_recurrent(config, str(config.cell)))
        for memory in memories if config.attends else []:
            formula = f"{SCORES.get(config.attention, '')};  context = Σ softmax(scores)ₛ · memoryₛ"
            site = f"decoder.{named('cross_attention', memory)}"
            parts.append(
                _part("attention", f"looks at the {_called(memory)} ({config.attention})", formula, "1 head", site)
            )
    output = _part("head", "next token", "p(token) = softmax(W x)", f"{_width(config)} → vocabulary")
    return {"name": "decoder", "title": "Decoder", "parts": [*parts, output]}


def _embedding(config: Any) -> Values:
    front = getattr(config, "front_end", None)
    kind = getattr(front, "kind", "tokens")
    if front is not None and not isinstance(front, TokensFrontEnd):
        return _part("embed", kind, "x = what the front end makes of each field", f"fields × {_width(config)}")
    positions = getattr(getattr(config, "positions", None), "kind", "none")
    where = {
        "none": "",
        "rotary": "; positions turn q and k",
        "relative": "; positions: by distance in each attention",
    }.get(positions, f" + {positions} position")
    scale = "" if isinstance(config, GptConfig | BertConfig) else " · √D"
    return _part("embed", "token vectors", f"x = E[token]{scale}{where}", f"tokens × {_width(config)}")


def _block(config: BlockConfig, name: str, layer: int, memories: list[str], *, written: bool) -> list[Values]:
    width, heads = config.width, config.heads
    shape = f"{heads} heads × {config.head_width}"
    formula = "softmax(q kᵀ / √H + mask) v"
    who = "written looks at its own past" if written else "each looks at all"
    if not written and config.window(layer):
        who += f", {config.window(layer)} back"
    title = f"{layer + 1} · self-attention: {who}"
    found = [_part("attention", title, formula, shape, f"{name}.self_attention")]
    for memory in memories:
        site = f"{name}.{named('cross_attention', memory)}"
        found.append(_part("attention", f"{layer + 1} · looks at the {_called(memory)}", formula, shape, site))
    inner = config.feedforward
    activation = config.activation
    forward = f"W₂ ({activation}(G x) ⊙ W₁ x)" if config.gated else f"W₂ {activation}(W₁ x)"
    order = "x + f(norm(x))" if config.order == "pre" else "norm(x + f(x))"
    note = f"{order};  f(x) = {forward};  {NORMS[config.norm]}"
    found.append(_part("feedforward", f"{layer + 1} · feed-forward", note, f"{width} → {inner} → {width}"))
    return found


def _recurrent(config: Any, what: str) -> Values:
    formula = (
        "f, i, o = σ(W x + U h);  c ← f ⊙ c + i ⊙ tanh(W x + U h);  h = o ⊙ tanh(c)"
        if config.cell == "lstm"
        else "r, z = σ(W x + U h);  h ← z ⊙ h + (1 − z) ⊙ tanh(W x + r ⊙ U h)"
    )
    return _part("recurrent", f"{what}, {config.layers} layers", formula, f"{_width(config)} wide")
