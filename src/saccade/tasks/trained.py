"""The encoder and decoder of a model folder, in PyTorch, as they were trained."""

from saccade.folder import ModelFolder
from saccade.models.encdec import EncoderDecoder, EncoderDecoderConfig, build_encoder_decoder
from saccade.weights import filled, insist_on_room


def sequence_config(folder: ModelFolder) -> EncoderDecoderConfig:
    return EncoderDecoderConfig.read(folder.config["model"], where=str(folder.path / "config.json"))


def sequence_model(folder: ModelFolder, vocabulary: int) -> EncoderDecoder:
    config = sequence_config(folder)
    insist_on_room(folder, config.encoder.least_weights + config.decoder.least_weights)
    return filled(folder, lambda: build_encoder_decoder(config, vocabulary)).eval()
