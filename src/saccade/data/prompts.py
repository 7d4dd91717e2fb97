"""Prompts of examples: the words they are made of, read from files, and the pages a model learns from or is asked."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from saccade.data.prompt_families import FAMILIES, LONGEST_WORD, VOWELS, Pool, PromptTask, WordLists, pick
from saccade.data.text import Pair, find, read_lines
from saccade.errors import UserError

EWT, TATOEBA, CODESPELL = (
    "ud_english_ewt/en_ewt-ud-train.conllu.gz",
    "tatoeba/eng-spa.train.tsv.gz",
    "spelling/codespell.tsv.gz",
)
LONGEST = 380
"""Characters of a page: what a context of 384 holds, with marks at both ends."""
LONGEST_SENTENCE = 34
MOST_SENTENCES = 200
"""For each verb, else half of them would be about having and getting."""
FREQUENT = 4000
"""Only misspellings of so many words, the most frequent, are worth learning for a small model."""
SUBJECTS = frozenset({"i", "you", "he", "she", "it", "we", "they", "tom", "mary"})
SINGULAR = frozenset({"He", "She", "It", "Tom", "Mary"})
Tagged = tuple[str, str, str]
"""Word, lemma, and Penn's tag if it is a noun or a full verb."""
IRREGULAR_NOUNS: dict[str, str] = dict(
    re.findall(
        r"(\w+) (\w+)",
        "calf calves, elf elves, fireman firemen, goose geese, half halves, hero heroes, knife knives, leaf leaves, "
        "loaf loaves, ox oxen, person people, policeman policemen, potato potatoes, scarf scarves, stomach stomachs, "
        "tomato tomatoes",
    )
)
IRREGULAR_VERBS: dict[str, str] = dict(
    re.findall(
        r"(\w+) (\w+)",
        "bend bent, bite bit, bleed bled, breed bred, creep crept, dig dug, drink drank, feed fed, fight fought, "
        "flee fled, forgive forgave, freeze froze, grind ground, kneel knelt, lend lent, light lit, mistake mistook, "
        "overcome overcame, shake shook, shine shone, shoot shot, shrink shrank, sing sang, sink sank, slide slid, "
        "spin spun, spring sprang, sting stung, stink stank, swear swore, sweep swept, swim swam, swing swung, "
        "tear tore, weave wove, weep wept, wind wound",
    )
)
"""Those the treebank lacks, or has mistyped or too seldom to be trusted."""


# WordLists


def read_words(folders: Sequence[Path]) -> WordLists:
    """The training parts of English Web Treebank and of Tatoeba's English side, and codespell's list."""
    tagged = list(_tagged(find(EWT, folders)))
    sentences = list(dict.fromkeys(line.partition("\t")[0] for line in read_lines(find(TATOEBA, folders))))
    misspellings = dict(_misspellings(find(CODESPELL, folders)))
    written = chain((word for word, _, _ in tagged), *(re.findall(r"[A-Za-z']+", sentence) for sentence in sentences))
    seen = Counter(word for word in written if _is_word(word) and word not in misspellings)
    frequent = {word for word, _ in seen.most_common(FREQUENT)}
    verbs = dict(_verbs(tagged, seen))
    words = WordLists(
        plain=Pool.split([word for word in sorted(seen) if seen[word] > 1 and 3 <= len(word) <= LONGEST_WORD], str),
        nouns=_pool(_nouns(tagged, seen)),
        verbs=_pool(verbs.items()),
        misspellings=_pool(pair for pair in misspellings.items() if pair[1] in frequent),
        sentences=_without_likes(_pool(_spoilt(sentences, verbs, tagged))),
    )
    for name, pool in vars(words).items():
        if not pool.training or not pool.held:
            raise UserError(
                f"too few {name} for prompts: {len(pool.training)} to train with and {len(pool.held)} held out, from"
                f" {EWT}, {TATOEBA} and {CODESPELL}; are these files whole?"
            )
    return words


def _pool(pairs: Iterable[Pair]) -> Pool[Pair]:
    return Pool.split(sorted(dict(pairs).items()), lambda pair: pair[0])


def _without_likes(pool: Pool[Pair]) -> Pool[Pair]:
    """Held-out sentences that are trained ones with another first word ("She goed home") would be half known."""

    def rest(pair: Pair) -> str:
        return pair[0].partition(" ")[2]

    trained = set(map(rest, pool.training))
    return Pool(pool.training, tuple(pair for pair in pool.held if rest(pair) not in trained))


def _is_word(text: str) -> bool:
    """Small letters only: a name is no word here, and inputs should not differ by their capitals."""
    return text.isascii() and text.isalpha() and text.islower()


def _tagged(path: Path) -> Iterator[Tagged]:
    """Every token in CoNLL-U columns."""
    for line in read_lines(path):
        columns = line.split("\t")
        if len(columns) == 10:
            # Auxiliaries have the tags of verbs, but neither their past ("would") nor their grammar.
            yield columns[1], columns[2], columns[4] if columns[3] in ("NOUN", "VERB") else ""


def _misspellings(path: Path) -> Iterator[Pair]:
    for line in read_lines(path):
        wrong, _, right = line.partition("\t")
        alike = abs(len(wrong) - len(right)) <= 2
        if alike and _is_word(wrong) and _is_word(right) and 3 <= len(right) <= 12:
            yield wrong, right


def _inflected(tagged: Sequence[Tagged], tag: str) -> dict[str, Counter[str]]:
    """The forms that carry the tag, by lemma."""
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    for word, lemma, its_tag in tagged:
        if its_tag == tag and _is_word(word) and _is_word(lemma) and word != lemma:
            forms[lemma][word] += 1
    return forms


def _nouns(tagged: Sequence[Tagged], seen: Counter[str]) -> Iterator[Pair]:
    """Singular and plural. Regular ones count when tagged, or when seen and surely no verb ("follows")."""
    forms = _inflected(tagged, "NNS")
    lemmas = Counter(lemma for _, lemma, tag in tagged if tag in ("NN", "NNS"))
    verbs = {lemma for _, lemma, tag in tagged if tag.startswith("VB")}
    for lemma, count in lemmas.items():
        regular, tags = _regular_plural(lemma), forms[lemma]
        best = max(tags, key=lambda form: (tags[form], seen[form]), default=regular)
        # People mistype, and it is tagged all the same: an irregular form must come twice.
        trusted = best == regular or (tags[best] > 1 and seen[best] > 2)
        if trusted and count > 1 and seen[lemma] > 1 and seen[best] and (tags or lemma not in verbs) and len(lemma) > 2:
            yield lemma, best
    yield from IRREGULAR_NOUNS.items()


def _verbs(tagged: Sequence[Tagged], seen: Counter[str]) -> Iterator[Pair]:
    """Infinitive and past tense: as tagged, or regular and seen."""
    forms = _inflected(tagged, "VBD")
    lemmas = Counter(lemma for _, lemma, tag in tagged if tag.startswith("VB"))
    for lemma, count in lemmas.items():
        tags = forms[lemma]
        # "Hoped" is the past of "hope": "hop" must have another.
        regular = [form for form in _regular_pasts(lemma) if form[:-1] == lemma or form[:-1] not in lemmas]
        # One tag may be a slip; then the form that is written more often is the right one.
        best = max([*tags, *regular], key=lambda form: (tags[form] if tags[form] > 1 else 0, seen[form]), default="")
        trusted = seen[best] > (1 if best in regular else 2)
        if trusted and count > 1 and seen[lemma] > 1 and lemma != "be":
            yield lemma, best
    yield from IRREGULAR_VERBS.items()


def _regular_plural(noun: str) -> str:
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    return noun[:-1] + "ies" if noun.endswith("y") and noun[-2:-1] not in VOWELS else noun + "s"


def _regular_pasts(verb: str) -> list[str]:
    """The likelier first. Whether a last consonant is doubled depends on the stress, which spelling does not show."""
    if verb.endswith("e"):
        return [verb + "d"]
    if verb.endswith("y") and verb[-2:-1] not in VOWELS:
        return [verb[:-1] + "ied"]
    forms = [verb + "ed", verb + verb[-1] + "ed"]
    return forms[::-1] if re.search(r"[^aeiou][aeiou][^aeiouwxy]$", verb) else forms


def _spoilt(sentences: Sequence[str], verbs: dict[str, str], tagged: Sequence[Tagged]) -> Iterator[Pair]:
    """Short sentences with one verb as learners have it: "I eated the apple", "He go home"."""
    past = {past: _regular_pasts(lemma)[0] for lemma, past in verbs.items() if past not in _regular_pasts(lemma)}
    # "He read it" is right as it stands, and "he be" would be half of all.
    right = {"be", *(lemma for word, lemma, tag in tagged if tag == "VBD" and word == lemma)}
    third = {form: lemma for lemma, forms in _inflected(tagged, "VBZ").items() for form in forms if lemma not in right}
    # There are saws, and things left: such a form is surely a verb only after a subject.
    doubtful = {word for word, _, tag in tagged if not tag.startswith("VB")}
    times: Counter[str] = Counter()
    for sentence in sentences:
        tokens = sentence.split(" ")
        for place, (before, token) in enumerate(pairwise(tokens), 1):
            form = token.rstrip(".,!?")
            wrong = past.get(form) if form not in doubtful or before.lower() in SUBJECTS else None
            if place == 1 and before in SINGULAR:
                wrong = wrong or third.get(form)
            if wrong and times[wrong] < MOST_SENTENCES and len(sentence) <= LONGEST_SENTENCE and sentence.isascii():
                times[wrong] += 1
                yield " ".join([*tokens[:place], wrong + token[len(form) :], *tokens[place + 1 :]]), sentence
                break


# Pages

LABELS: list[Pair] = re.findall(
    r"([\w ]+)/([\w ]+)",
    "Input/Output,Q/A,Question/Answer,X/Y,From/To,Before/After,Source/Target,Text/Result,Given/Wanted,Word/Answer,"
    "Example/Solution,Poor English input/Good English output,input/output,in/out,Old/New,This/That",
)
WEIGHTS = (
    dict.fromkeys(FAMILIES, 1.0) | dict.fromkeys(["reverse", "letters", "spelling", "grammar"], 1.5) | {"case": 0.7}
)
"""How often training meets each family, the harder the more often."""
ARROWS = ("->", "=>", "=", ":", "becomes", "|", ">")


@dataclass(frozen=True)
class Template:
    """How a page writes its examples down."""

    opening: str
    middle: str
    closing: str

    def line(self, pair: Pair) -> str:
        return f"{self.opening}{pair[0]}{self.middle} {pair[1]}{self.closing}"


def draw_template(random: np.random.Generator) -> Template:
    """Drawn without a look at the task, so that labels tell nothing of it; a third of them are no words at all."""
    closing = "\n\n" if random.random() < 0.2 else "\n"
    kind = random.random()
    if kind < 0.2:
        return Template("", f" {pick(random, ARROWS)}", "\n")
    labels = pick(random, LABELS) if random.random() < 0.65 else (_made_up(random), _made_up(random))
    mark = pick(random, (":", ":", ":", " =", " -"))
    between = " " if kind < 0.3 else "\n"
    return Template(f"{labels[0]}{mark} ", f"{between}{labels[1]}{mark}", closing)


def _made_up(random: np.random.Generator) -> str:
    syllables = (pick(random, "bdfgklmnprstvz") + pick(random, VOWELS) for _ in range(int(random.integers(1, 4))))
    word = "".join(syllables) + pick(random, ("", "n", "x"))
    return word.capitalize() if random.random() < 0.5 else word


def document(random: np.random.Generator, words: WordLists, examples: int = 12) -> str:
    """A page to learn from: two examples of a task to `examples` of them, as far as the page goes, and a blank line.

    Seven pages of ten do not say what is to be done.
    """
    shares = np.cumsum(list(WEIGHTS.values()))
    family = list(WEIGHTS)[int(np.searchsorted(shares, random.random() * shares[-1], side="right"))]
    task, template = FAMILIES[family].draw(random, words, held=False), draw_template(random)
    page = _instruction(random, task) if random.random() < 0.3 else ""
    for pair in task.pairs(random, int(random.integers(2, examples + 1))):
        line = template.line(pair)
        if len(page) + len(line) >= LONGEST:
            break
        page += line
    return page.rstrip("\n") + "\n\n"


class Question(NamedTuple):
    """A page that stops where the answer is due, and that answer, which begins with a space."""

    page: str
    answer: str
    examples: int
    """How many it has: fewer than were asked for where those would not fit."""


def question(
    random: np.random.Generator, words: WordLists, family: str, examples: int, *, instructed: bool = False
) -> Question:
    """Its inputs are held out (words, misspellings, whole sentences), and so are affixes and combinations: no training
    page of any family has them. As an answer, or inside a sentence, a held-out word may have been met.
    """
    if family not in FAMILIES:
        raise UserError(f"no prompt family {family!r}; there are {', '.join(FAMILIES)}")
    while True:
        # Some templates and inputs are shorter than others: a page is given up after several.
        for _ in range(20):
            task, template = FAMILIES[family].draw(random, words, held=True), draw_template(random)
            *shown, asked = task.pairs(random, examples + 1) or [("", "")]
            page = _instruction(random, task) if instructed else ""
            page += "".join(map(template.line, shown)) + f"{template.opening}{asked[0]}{template.middle}"
            if len(shown) == examples and asked[1] and len(page) + len(asked[1]) + 2 <= LONGEST:
                return Question(page, f" {asked[1]}", examples)
        examples -= 1


def _instruction(random: np.random.Generator, task: PromptTask) -> str:
    return pick(random, task.wordings) + "\n"
