"""A file of sentences by CTranslate2, as a person would write it: standard input to standard output.

Stands alone: imports nothing but CTranslate2 and the tokenizer, since its start is on the clock too.
"""

import argparse
import sys

import ctranslate2
from tokenizers import Tokenizer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("tokenizer")
    parser.add_argument("--compute", default="int8")
    parser.add_argument("--inter", type=int, default=1)
    parser.add_argument("--intra", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--beam", type=int, default=5)
    given = parser.parse_args()

    translator = ctranslate2.Translator(
        given.folder, compute_type=given.compute, inter_threads=given.inter, intra_threads=given.intra
    )
    tokenizer = Tokenizer.from_file(given.tokenizer)
    numbers = tokenizer.get_vocab()
    words = {number: word for word, number in numbers.items()}
    lines = sys.stdin.read().splitlines()
    encodings = tokenizer.encode_batch_fast([" " + line for line in lines], add_special_tokens=False)
    sources = [[*(words[i] for i in encoding.ids), "</s>"] for encoding in encodings]
    # It sorts by length itself where batches have a limit.
    results = translator.translate_batch(
        sources,
        beam_size=given.beam,
        max_batch_size=given.tokens,
        batch_type="tokens",
        length_penalty=0.6,
        max_decoding_length=2 * max(map(len, sources)) + 20,
    )
    for result in results:
        ids = [numbers[word] for word in result.hypotheses[0]]
        print(tokenizer.decode(ids).removeprefix(" "))


if __name__ == "__main__":
    main()
