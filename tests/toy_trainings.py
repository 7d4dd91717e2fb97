"""Tiny trainings of every task: made-up data, and a recipe that trains on it in seconds."""

import random
from collections.abc import Callable
from pathlib import Path

from made_up_words import made_up_data

DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
PHONEMES = ["Z IH R OW", "W AH N", "T UW", "TH R IY", "F AO R", "F AY V", "S IH K S", "S EH V AH N", "EY T", "N AY N"]
PAIRS = 200
STACK = "layers = 1\nwidth = 16\nheads = 2\nfeedforward = 32\n"
SEQUENCE = f"""[model.encoder]
{STACK}
[model.decoder]
{STACK}
[search]
beam = 2
factor = 1.0
extra = 4
"""
TRAIN = """[train]
steps = {steps}
batch_tokens = 256
warmup = 5
validate_every = {every}
average = 3
select_by = "{select_by}"
adam = {{rate = 3e-3}}
"""
Files = dict[str, str]
"""Name -> text."""


def write_toy(folder: Path, *, task: str = "translation", steps: int = 60, pairs: int = PAIRS) -> Path:
    """The data of a tiny training and its recipe, toy.toml; the recipe's path."""
    folder.mkdir(parents=True, exist_ok=True)
    if task == "prompts":
        made_up_data(folder)
    rest, select_by, files = TOYS[task](pairs)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    recipe = folder / "toy.toml"
    # A thousand pages are held out for prompts, whatever is trained on.
    train = TRAIN.format(steps=steps, every=steps // 5 if task == "prompts" else 2, select_by=select_by)
    recipe.write_text(f'task = "{VARIANTS.get(task, task)}"\nname = "toy"\n{rest}\n{train}', encoding="utf-8")
    return recipe


def _rows(pairs: int) -> list[list[str]]:
    """Spelt digits, a few in a row."""
    chance = random.Random(1)
    return [[chance.choice(DIGITS) for _ in range(chance.randint(2, 6))] for _ in range(pairs)]


def _translation(pairs: int, model: str = SEQUENCE) -> tuple[str, str, Files]:
    lines = [f"{' '.join(row)}\t{' '.join(reversed(row))}\n" for row in _rows(pairs)]
    data = '[data]\ntrain = ["train.tsv"]\nvalid = ["valid.tsv"]\n'
    files = {"train.tsv": "".join(lines), "valid.tsv": "".join(lines[:4])}
    return f"{data}[tokens]\nvocabulary = 300\n{model}", "bleu", files


def _recurrent(pairs: int) -> tuple[str, str, Files]:
    stack = "kind = 'recurrent'\nwidth = 16\n"
    return _translation(pairs, SEQUENCE.replace(STACK, stack))


def _correction(pairs: int) -> tuple[str, str, Files]:
    sentences = [f"{' '.join(row)}\n" for row in _rows(pairs)]
    # A letter doubled, a letter lost: more than five a digit, since a fifth of a list is never trained on.
    wrong = [
        (f"{digit[:place]}{middle}{digit[place + 1 :]}", digit)
        for digit in DIGITS
        for place in range(len(digit))
        for middle in ("", 2 * digit[place])
    ]
    text = "{file = '%s', documents = 'lines'}"
    data = f"[data]\ntrain = [{text % 'train.txt'}]\nvalid = [{text % 'valid.txt'}]\nmisspellings = ['slips.tsv']\n"
    files = {
        "train.txt": "".join(sentences),
        "valid.txt": "".join(sentences[:4]),
        "slips.tsv": "misspelling\tcorrect\n" + "".join(f"{slip}\t{digit}\n" for slip, digit in wrong),
    }
    extras = "copies = 2\nsingle_words = true\n[tokens]\nvocabulary = 300\nsource_bytes = true\n"
    return f"caution = 0.5\nlexicon_min_count = 2\n{data}{extras}{SEQUENCE}", "accuracy", files


def _pronunciation(pairs: int) -> tuple[str, str, Files]:
    sounds = dict(zip(DIGITS, PHONEMES, strict=True))
    lines = ["".join(row[:3]) + "\t" + " ".join(sounds[digit] for digit in row[:3]) + "\n" for row in _rows(pairs)]
    data = '[data]\ntrain = ["train.tsv"]\nvalid = ["valid.tsv"]\ntest = ["valid.tsv"]\n'
    files = {"train.tsv": "".join(lines), "valid.tsv": "".join(lines[:4])}
    return f"{data}{SEQUENCE}", "-wer", files


def _classification(pairs: int) -> tuple[str, str, Files]:
    rows = [f"{' '.join(row)}\t{'long' if len(row) > 3 else 'short'}\n" for row in _rows(pairs)]
    data = '[data]\ntrain = ["rows.tsv"]\nheld_out_share = 0.1\n'
    model = f"[tokens]\nvocabulary = 300\n[model]\n{STACK}context = 64\n"
    # Hidden tokens and dropout draw random numbers in every step.
    return (
        f"token_dropout = 0.1\n{data}{model}",
        "accuracy",
        {"rows.tsv": "text\tlabel\n" + "".join(dict.fromkeys(rows))},
    )


def _tagging(pairs: int) -> tuple[str, str, Files]:
    def sentence(row: list[str]) -> str:
        words = "".join(
            f"{number}\t{digit}\t_\t{'ODD' if DIGITS.index(digit) % 2 else 'EVEN'}\t_\t_\t_\t_\t_\t_\n"
            for number, digit in enumerate(row, 1)
        )
        return f"# text = {' '.join(row)}\n{words}\n"

    sentences = [sentence(row) for row in _rows(pairs)]
    data = '[data]\ntrain = ["train.conllu"]\nvalid = ["valid.conllu"]\ntest = ["valid.conllu"]\n'
    files = {"train.conllu": "".join(sentences), "valid.conllu": "".join(sentences[:4])}
    return f"{data}[tokens]\nvocabulary = 300\n[model]\n{STACK}context = 64\n", "accuracy", files


def _text(pairs: int) -> Files:
    """Documents of three lines, a blank line between them."""
    lines = [" ".join(row) for row in _rows(pairs)]
    return {"text.txt": "\n\n".join("\n".join(lines[place : place + 3]) for place in range(0, pairs, 3)) + "\n"}


def _language(pairs: int) -> tuple[str, str, Files]:
    data = '[data]\nkind = "files"\ntrain = [{file = "text.txt"}]\nheld_out_share = 0.1\n'
    return f'{data}[tokens]\nkind = "bytes"\n[model]\n{STACK}context = 32\ndropout = 0.1\n', "-loss", _text(pairs)


def _prompts(_: int) -> tuple[str, str, Files]:
    data = '[data]\nkind = "prompts"\npages = 100\nquestions = 1\n'
    return f'{data}[tokens]\nkind = "bytes"\n[model]\n{STACK}context = 384\n', "-loss", {}


def _masked(pairs: int) -> tuple[str, str, Files]:
    data = '[data]\ntrain = [{file = "text.txt", documents = "separated", separator = ""}]\nheld_out_share = 0.1\n'
    model = f"[tokens]\nvocabulary = 300\n[model]\n{STACK}context = 32\n"
    return f"next_sentence = true\n{data}{model}", "-loss", _text(pairs)


def _permuted(pairs: int) -> tuple[str, str, Files]:
    rest, select_by, files = _masked(pairs)
    rest = rest.replace("next_sentence = true\n", "").replace(
        "[model]\n", '[model]\nkind = "xlnet"\nsegments = false\n'
    )
    return rest, select_by, files


TOYS: dict[str, Callable[[int], tuple[str, str, Files]]] = {
    "translation": _translation,
    "recurrent": _recurrent,
    "correction": _correction,
    "pronunciation": _pronunciation,
    "classification": _classification,
    "tagging": _tagging,
    "language": _language,
    "prompts": _prompts,
    "masked": _masked,
    "permuted": _permuted,
}
"""Every task, and the variants of them that have samplers, objectives or states of their own; each gives the recipe
without its training, the score it chooses by, and its files."""
VARIANTS = {"recurrent": "translation", "prompts": "language", "permuted": "masked"}
