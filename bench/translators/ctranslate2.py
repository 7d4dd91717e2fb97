"""CTranslate2 on a folder that `bench.translators.same` wrote from Saccade's weights."""

import ctranslate2

from bench.translators.contract import MARKS, SIZES, TARGET, Sentences, Translate, read_arguments, time_cells


def words_of(vocabulary: int) -> list[str]:
    """It speaks in words, so every token gets a made-up one."""
    named = {MARKS.pad: "<pad>", MARKS.begin: "<s>", MARKS.end: "</s>"}
    return [named.get(number, f"w{number}") for number in range(vocabulary)]


def translator(folder: str, vocabulary: int, compute: str, threads: int) -> Translate:
    words = words_of(vocabulary)
    numbers = {word: number for number, word in enumerate(words)}
    model = ctranslate2.Translator(folder, device="cpu", compute_type=compute, inter_threads=1, intra_threads=threads)

    def translate(sources: Sentences, width: int) -> Sentences:
        found = model.translate_batch(
            [[words[i] for i in source] for source in sources],
            beam_size=width,
            length_penalty=0.6,
            min_decoding_length=TARGET,
            max_decoding_length=TARGET,
        )
        return [[numbers[word] for word in one.hypotheses[0]] for one in found]

    return translate


def main() -> None:
    given = read_arguments("folder", "compute")
    size = SIZES[given.size]
    translate = translator(given.folder, size.vocabulary, given.compute, given.threads)
    title = f"CTranslate2 {ctranslate2.__version__}, {given.compute}, threads: {given.threads}"
    time_cells(title, size, translate, given.calls)


if __name__ == "__main__":
    main()
