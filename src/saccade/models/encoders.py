"""Encoders with a head, built from their record."""

from torch import nn

from saccade.arch.bert import BertConfig
from saccade.arch.encoder_decoder import StackConfig
from saccade.arch.grid import GridConfig
from saccade.arch.heads import ClassHead, EncoderModel, TagsHead, TextEncoderConfig, WordsHead
from saccade.arch.xlnet import XlnetConfig
from saccade.models.bert import Bert, build_masked
from saccade.models.contract import Encoder, TextEncoder
from saccade.models.encdec import build_encoder, build_front_end
from saccade.models.heads import ClassifierModel, TaggerModel
from saccade.models.xlnet import build_xlnet
from saccade.nn.dropout import TokenDropout


def build_text_encoder(config: TextEncoderConfig, vocabulary: int) -> TextEncoder:
    """`vocabulary` counts the mask."""
    return build_xlnet(config, vocabulary).encoder if isinstance(config, XlnetConfig) else Bert(config, vocabulary)


def build_encoder_model(config: EncoderModel, vocabulary: int, hide: TokenDropout | None = None) -> nn.Module:
    """`hide` drops tokens in training."""
    encoder, head = config.encoder, config.head
    if isinstance(encoder, StackConfig | GridConfig):
        assert isinstance(head, ClassHead)
        reader: Encoder = build_encoder(encoder, build_front_end(encoder, vocabulary))
        return ClassifierModel(reader, head, encoder.dropout, hide)
    match head:
        case ClassHead():
            return ClassifierModel(build_text_encoder(encoder, vocabulary), head, encoder.dropout, hide)
        case TagsHead():
            return TaggerModel(build_text_encoder(encoder, vocabulary), head.outputs, encoder.dropout, hide)
        case WordsHead() if isinstance(encoder, BertConfig):
            return build_masked(encoder, vocabulary, follows=head.next_sentence)
        case _:
            assert isinstance(encoder, XlnetConfig)
            return build_xlnet(encoder, vocabulary)
