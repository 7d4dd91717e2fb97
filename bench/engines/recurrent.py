"""Saccade's recurrent family: GRU + additive attention, by its own objective and optimiser."""

from bench.engines.contract import RECURRENT, SIZE, Engine, run
from bench.engines.saccade import wrap
from saccade.models.encdec import EncoderDecoder, EncoderDecoderConfig, build_encoder_decoder
from saccade.models.rnn import RecurrentDecoderConfig, RecurrentEncoderConfig


def build_model(vocabulary: int) -> EncoderDecoder:
    encoder = RecurrentEncoderConfig(width=RECURRENT.width, embed=RECURRENT.embed, dropout=SIZE.dropout)
    decoder = RecurrentDecoderConfig(width=RECURRENT.width, embed=RECURRENT.embed, dropout=SIZE.dropout)
    return build_encoder_decoder(EncoderDecoderConfig(encoder=encoder, decoder=decoder), vocabulary)


def build(vocabulary: int, pad: int) -> Engine:  # noqa: ARG001  Saccade's padding is a constant of its own
    return wrap(build_model(vocabulary))


if __name__ == "__main__":
    run(build)
