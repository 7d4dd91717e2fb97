"""Files with just enough English for the pages of `data.kind = "prompts"`: no downloaded set is needed."""

import gzip
import re
from pathlib import Path

from saccade.data.prompts import CODESPELL, EWT, TATOEBA

NOUNS = re.findall(
    r"\w+",
    "apple basket candle doctor engine feather garden hammer island jacket kettle ladder mirror needle orange pencil "
    "rabbit saddle tunnel uncle valley window yard zebra anchor bridge carpet dragon eagle forest",
)
REGULAR = re.findall(
    r"\w+",
    "walk talk jump look help open push pull call clean start want need rain cook count visit paint answer ask "
    "climb learn listen follow finish",
)
IRREGULAR = {"eat": "ate", "go": "went", "take": "took", "give": "gave", "see": "saw", "buy": "bought", "know": "knew"}


def made_up_data(folder: Path) -> Path:
    tokens = [(noun, noun, "NOUN", "NN") for noun in NOUNS] + [(f"{noun}s", noun, "NOUN", "NNS") for noun in NOUNS]
    pasts = {verb: f"{verb}ed" for verb in REGULAR} | IRREGULAR
    tokens += [(verb, verb, "VERB", "VB") for verb in pasts]
    tokens += [(past, verb, "VERB", "VBD") for verb, past in pasts.items()]
    tokens += [(f"{verb}s", verb, "VERB", "VBZ") for verb in REGULAR]
    tokens += [("appels", "apple", "NOUN", "NNS"), ("could", "can", "AUX", "VBD"), ("Paris", "Paris", "PROPN", "NNP")]
    lines = [
        f"{n}\t{word}\t{lemma}\t{kind}\t{tag}\t_\t_\t_\t_\t_\n" for n, (word, lemma, kind, tag) in enumerate(tokens)
    ]
    sentences = [f"{who} {past} the {noun}." for who in ("I", "We") for past in pasts.values() for noun in NOUNS[:9]]
    sentences += [f"Tom {verb}s the {noun}." for verb in REGULAR for noun in NOUNS[9:12]]
    misspelled = [f"{noun[:2]}{noun[1:]}\t{noun}\n" for noun in NOUNS] + [
        "teh\tthe|ten\n",
        "appels\tapples\n",
        "Capital\tcapital\n",
    ]
    for name, text in {
        EWT: 3 * "".join(lines),
        TATOEBA: "".join(f"{sentence}\t-\n" for sentence in sentences),
        CODESPELL: "misspelling\tcorrect\n" + "".join(misspelled),
    }.items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(gzip.compress(text.encode()))
    return folder
