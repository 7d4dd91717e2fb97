"""CTranslate2 on folders that `bench.writers.same` wrote from Saccade's weights."""

from pathlib import Path

import ctranslate2

from bench.measuring import read_arguments
from bench.resident import resident
from bench.writers.contract import MARKS, SHAPES, Prompts, Write, measure_writer


def words_of(vocabulary: int) -> list[str]:
    """It speaks in words, so every token gets a made-up one."""
    named = {MARKS.pad: "<pad>", MARKS.begin: "<s>", MARKS.end: "</s>"}
    return [named.get(number, f"w{number}") for number in range(vocabulary)]


def open_generator(folder: Path, compute: str, threads: int) -> ctranslate2.Generator:
    path = str(folder / f"ctranslate2-{compute}")
    return ctranslate2.Generator(path, device="cpu", compute_type=compute, inter_threads=1, intra_threads=threads)


def writer(model: ctranslate2.Generator, vocabulary: int) -> Write:
    words = words_of(vocabulary)

    def write(prompts: Prompts, count: int) -> Prompts:
        found = model.generate_batch(
            [[words[i] for i in prompt] for prompt in prompts],
            beam_size=1,
            min_length=count,
            max_length=count,
            include_prompt_in_result=False,  # so that it reads a prompt at once
        )
        return [one.sequences_ids[0] for one in found]

    return write


def main() -> None:
    given = read_arguments(SHAPES, "folder", "compute")
    before = resident()
    shape = SHAPES[given.size]
    write = writer(open_generator(Path(given.folder), given.compute, given.threads), shape.vocabulary)
    title = f"CTranslate2 {ctranslate2.__version__}, {given.compute}, threads: {given.threads}"
    measure_writer(title, shape, write, given.calls, before)


if __name__ == "__main__":
    main()
