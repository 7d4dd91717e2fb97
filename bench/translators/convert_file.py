"""A model folder of Saccade as a folder of CTranslate2: `python -m bench.translators.convert_file MODEL FOLDER`."""

import json
import sys
from pathlib import Path

from bench.convert import write_ctranslate2
from saccade.folder import read_folder
from saccade.models.encdec import EncoderDecoderConfig, build_encoder_decoder
from saccade.tasks.load import model_path
from saccade.tokens.vocabulary import read_vocabulary
from saccade.weights import fill


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    stored = read_folder(model_path(name))
    vocabulary = read_vocabulary(stored.tokenizer, stored.path)
    config = EncoderDecoderConfig.read(stored.config["model"], where=str(stored.path))
    model = build_encoder_decoder(config, len(vocabulary)).eval()
    fill(model, stored)
    numbers: dict[str, int] = vocabulary.tokenizer.get_vocab()
    words = sorted(numbers, key=numbers.__getitem__)
    write_ctranslate2(model, words, folder)
    (folder / "tokenizer.json").write_text(stored.tokenizer, encoding="utf-8")
    print(json.dumps({"parameters": sum(weight.numel() for weight in model.parameters())}))


if __name__ == "__main__":
    main()
