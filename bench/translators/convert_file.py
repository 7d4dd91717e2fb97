"""A model folder of Saccade as a folder of CTranslate2: `python -m bench.translators.convert_file MODEL FOLDER`."""

import json
import sys
from pathlib import Path

from bench.convert import write_ctranslate2
from saccade.arch.encoder_decoder import EncoderDecoderConfig
from saccade.folder import read_folder
from saccade.models.encdec import build_encoder_decoder
from saccade.pipelines.load import model_path
from saccade.tokens.vocabulary import read_vocabulary
from saccade.weights import filled


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    stored = read_folder(model_path(name))
    vocabulary = read_vocabulary(stored.tokenizer, stored.path, marks=stored.marks)
    config = EncoderDecoderConfig.read(stored.config.model, where=str(stored.path))
    size = len(vocabulary)
    model = filled(stored, config.weights(size), lambda: build_encoder_decoder(config, size)).eval()
    numbers: dict[str, int] = vocabulary.tokenizer.get_vocab()
    words = sorted(numbers, key=numbers.__getitem__)
    write_ctranslate2(model, words, stored.marks, folder)
    (folder / "tokenizer.json").write_text(stored.tokenizer, encoding="utf-8")
    print(json.dumps({"parameters": sum(weight.numel() for weight in model.parameters())}))


if __name__ == "__main__":
    main()
