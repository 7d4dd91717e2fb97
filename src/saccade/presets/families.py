"""How the presets of a family are made: what all its sizes share, and the papers they come from."""

from collections.abc import Mapping
from typing import Any

from saccade.arch.bert import BertConfig
from saccade.arch.encoder_decoder import EncoderDecoderConfig, StackConfig
from saccade.arch.front_end import PatchesFrontEnd
from saccade.arch.gpt import GptConfig
from saccade.arch.heads import ClassHead, EncoderModel, WordsHead
from saccade.arch.positions import LearnedConfig, NoPositionsConfig, RotaryConfig
from saccade.config import Table
from saccade.presets.preset import Preset, Trained

VASWANI = "Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762, table 3"
DEVLIN = "Devlin et al. 2018, BERT, arXiv:1810.04805, 3"
YANG = "Yang et al. 2019, XLNet, arXiv:1906.08237, appendix A.4"
LIU = "Liu et al. 2019, RoBERTa, arXiv:1907.11692"
RADFORD = "Radford et al. 2019, Language Models are Unsupervised Multitask Learners, table 2"
SHOEYBI = "Shoeybi et al. 2019, Megatron-LM, arXiv:1909.08053"
ROSSET = "Rosset 2020, Turing-NLG: A 17-billion-parameter language model by Microsoft (blog)"
BROWN = "Brown et al. 2020, Language Models are Few-Shot Learners, arXiv:2005.14165, table 2.1"
RAE = "Rae et al. 2021, Scaling Language Models: Gopher, arXiv:2112.11446, table 1"
DOSOVITSKIY = "Dosovitskiy et al. 2020, An Image is Worth 16x16 Words, arXiv:2010.11929, table 1"
TOUVRON = "Touvron et al. 2023, LLaMA, arXiv:2302.13971, table 2"
TOUVRON_2 = "Touvron et al. 2023, Llama 2, arXiv:2307.09288"
GRATTAFIORI = "Grattafiori et al. 2024, The Llama 3 Herd of Models, arXiv:2407.21783, table 3"


def adam_table(rate: float, betas: tuple[float, float], epsilon: float = 1e-8, decay: float = 0.0) -> Table:
    return {"rate": rate, "betas": list(betas), "epsilon": epsilon, "decay": decay}


def transformer(
    name: str, title: str, *, layers: int = 6, width: int = 512, heads: int = 8, inner: int = 2048,
    dropout: float = 0.1, published: str, **more: Any,
) -> Preset:  # fmt: skip
    """Post-norm, sinusoids, one vocabulary of 37,000 pieces for both languages and the output (3.4, 5.1)."""
    stack = StackConfig(layers=layers, width=width, heads=heads, feedforward=inner, order="post", dropout=dropout)
    settings = {
        "train.adam": adam_table((width * 4000) ** -0.5, (0.9, 0.98), 1e-9),  # the peak of formula 3
        "train.schedule": "inverse-square-root",
        "train.smoothing": 0.1,
    }
    model = EncoderDecoderConfig(encoder=stack, decoder=stack)
    return Preset(
        name, title, VASWANI, model, 37_000, published, context=more.pop("context", 25), settings=settings, **more
    )


def bert(
    name: str, title: str, paper: str, *, layers: int, width: int, vocabulary: int = 30_522, roberta: bool = False,
    rate: float, published: str, **more: Any,
) -> Preset:  # fmt: skip
    """Heads of 64, learned positions, post-norm; counted with the pooler, as in the published checkpoints."""
    rows = 514 if roberta else 512
    encoder = BertConfig(
        layers=layers, width=width, heads=width // 64, feedforward=4 * width, context=512,
        positions=LearnedConfig(length=rows), segments=1 if roberta else 2, epsilon=1e-5 if roberta else 1e-12,
    )  # fmt: skip
    betas, epsilon = ((0.9, 0.98), 1e-6) if roberta else ((0.9, 0.999), 1e-6)
    settings = {"train.adam": adam_table(rate, betas, epsilon, 0.01), "train.schedule": "linear"}
    # RoBERTa guesses no next sentence, but its published checkpoints have the pooler that this would need.
    model = EncoderModel(encoder=encoder, head=WordsHead(next_sentence=True))
    return Preset(
        name, title, paper, model, vocabulary, published, context=512, settings=settings,
        uncounted=("words", "follows"), **more,
    )  # fmt: skip


def gpt(
    name: str, title: str, paper: str, *, layers: int, width: int, heads: int, context: int, vocabulary: int = 50_257,
    adam: Table | None = None, published: str, parts: Mapping[str, Any] | None = None, **more: Any,
) -> Preset:  # fmt: skip
    """GPT-2's parts, or those given: pre-norm, learned positions, the output layer tied to the token vectors."""
    told = {"positions": LearnedConfig(length=context), "feedforward": 4 * width, **(parts or {})}
    model = GptConfig(layers=layers, width=width, heads=heads, context=context, **told)
    settings = {"train.adam": adam or adam_table(6e-4, (0.9, 0.95), 1e-8, 0.1), "train.clip": 1.0}
    return Preset(name, title, paper, model, vocabulary, published, context=context, settings=settings, **more)


def gpt_3(name: str, title: str, *, layers: int, width: int, heads: int, rate: float, batch: float, published: str,
           **more: Any) -> Preset:  # fmt: skip
    trained = more.pop("trained", Trained(tokens=300e9, batch_tokens=batch, note="300 B tokens"))
    return gpt(
        name, title, BROWN, layers=layers, width=width, heads=heads, context=2048, published=published,
        adam=adam_table(rate, (0.9, 0.95), 1e-8, 0.1), parts={"windows": (0, GPT_3_BAND)}, trained=trained,
        notes=(*more.pop("notes", ()), GPT_3_BANDS), **more,
    )  # fmt: skip


def vit(name: str, title: str, *, layers: int, width: int, heads: int, patch: int, published: str) -> Preset:
    front = PatchesFrontEnd(height=224, width=224, patch=patch, class_token=True)
    stack = StackConfig(
        layers=layers, width=width, heads=heads, feedforward=4 * width, activation="gelu", epsilon=1e-6, front=front,
        positions=NoPositionsConfig(),
    )  # fmt: skip
    model = EncoderModel(encoder=stack, head=ClassHead(outputs=1000, pooling="first"))
    settings = {"train.adam": adam_table(1e-3, (0.9, 0.999), 1e-8, 0.1), "train.schedule": "linear"}
    return Preset(
        name, title, DOSOVITSKIY, model, 0, published, context=front.length, settings=settings,
        notes=("with the 1,000 classes of ImageNet; the paper's numbers are rounded",),
    )  # fmt: skip


def llama(
    name: str, title: str, paper: str, *, layers: int, width: int, heads: int, inner: int, tokens: float,
    key_heads: int | None = None, context: int = 2048, vocabulary: int = 32_000, base: float = 10_000.0,
    rate: float = 3e-4, published: str,
) -> Preset:  # fmt: skip
    parts = {
        "feedforward": inner, "key_heads": key_heads, "gated": True, "activation": "silu", "norm": "rms",
        "positions": RotaryConfig(base=base), "bias": False, "tie": False,
    }  # fmt: skip
    trained = Trained(tokens=tokens, batch_tokens=4e6, note=f"{tokens / 1e12:g} T tokens, 4 M in a step")
    return gpt(
        name, title, paper, layers=layers, width=width, heads=heads, context=context, vocabulary=vocabulary,
        published=published, adam=adam_table(rate, (0.9, 0.95), 1e-5, 0.1), parts=parts, trained=trained,
    )  # fmt: skip


GPT_3_BAND = 128
GPT_3_BANDS = (
    "dense and locally banded layers alternate; the paper gives no width of the band: 128 is the stride of the Sparse "
    "Transformer on text (Child et al. 2019, 7.2). No parameter depends on it."
)
