"""Saccade's recurrent family: GRU + additive attention, by its own objective and optimiser."""

from bench.engines.contract import RECURRENT, SIZE, Engine, MarkIds, run
from bench.engines.saccade import wrap
from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.arch.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from saccade.models.encdec import EncoderDecoder, build_encoder_decoder


def build_model(vocabulary: int) -> EncoderDecoder:
    encoder = RecurrentEncoderConfig(width=RECURRENT.width, embed=RECURRENT.embed, dropout=SIZE.dropout)
    decoder = RecurrentDecoderConfig(width=RECURRENT.width, embed=RECURRENT.embed, dropout=SIZE.dropout)
    return build_encoder_decoder(EncoderDecoderConfig(encoder=encoder, decoder=decoder), vocabulary)


def build(vocabulary: int, marks: MarkIds) -> Engine:  # noqa: ARG001  a batch says what is padding
    return wrap(build_model(vocabulary))


if __name__ == "__main__":
    run(build)
