"""The command that aligns words: align."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from saccade.cli.names import ModelName
from saccade.cli.output import answers_to, tell
from saccade.cli.progress import progress_bar
from saccade.cli.start import load_model
from saccade.errors import UserError, WrongUse

if TYPE_CHECKING:
    from saccade.evaluate.alignment import Links
    from saccade.explaining.aligning import Aligner, WordPair
    from saccade.explaining.places import AttentionLayer

DIAGONAL = "diagonal"
"""Stands for a model: what any must beat."""
DEV = 100
"""Sentences of gold that heads are chosen on; the others are scored."""


@Parameter(name="*")
@dataclass(frozen=True)
class AlignOptions:
    """Which heads, and what is written."""

    heads: str | None = None
    "Heads to average, as --choose names them: cross:2.3,cross:3.1@reading. Default: the taught one, or those drawn."
    choose: Path | None = None
    "Choose the heads on this table of sentences and translations, and name them."
    gold: Path | None = None
    "Score on this table of sentences, translations, sure and possible links (counted from 1)."
    tokenized: Annotated[bool, Parameter(negative="")] = False
    "Punctuation stands between spaces in these texts: it is joined with its word before it is read."
    first: Literal[0, 1] = 0
    "The number of the first word in what is written."
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None
    "FILE for the alignments. Default: standard output."
    format: Literal["text", "json"] = "text"
    "json: one JSON object per sentence, or the scores as one."
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False
    "No progress bar and no notices; errors are still printed."


DEFAULTS = AlignOptions()


def align(
    model: ModelName, source: str | None = None, target: str | None = None, /, *, options: AlignOptions = DEFAULTS
) -> int:
    """Align the words of texts with those of their translations, by a translator's attention.

    A line of links i-j for each pair: source word i, target word j; words are what stands between spaces. Every target
    word is linked with the source word that it looked at most.

    For example:

        saccade align en-es "this cat is very large" "este gato es muy grande"
        saccade align en-es my.en my.es -o my.links
        saccade align en-es --choose valid.tsv
        saccade align en-es my.en my.es --heads cross:2.3,cross:3.1@reading
        saccade align my-en-fr --gold hansards447.tsv --tokenized
        saccade align diagonal --gold hansards447.tsv

    Parameters
    ----------
    model:
        Name of a bundled translator, or a model folder; diagonal: no model, first word with first and last with last.
    source:
        A text, a file of texts, a line each, or a table (.tsv) of texts and translations.
    target:
        Its translation, or a file of them.
    """
    if (source is None) == (options.gold is None and options.choose is None):
        raise WrongUse("give a text and its translation, or two files, or --choose DATA, or --gold DATA")
    if options.gold is not None and options.choose is not None:
        raise WrongUse("--gold chooses heads on its own first sentences: leave out --choose")
    if options.gold is not None:
        return _score(model, options)
    translator = None if model == DIAGONAL else _translator(model)
    if options.choose is not None:
        return _choose(translator, options)
    assert source is not None
    pairs = _pairs(source, target)
    aligner = None if translator is None else _aligner(translator, pairs[0], options)
    failed = 0
    with answers_to(options.output), progress_bar("aligning", quiet=options.quiet or len(pairs) == 1) as bar:
        for number, (one, other) in enumerate(pairs):
            bar(number, len(pairs))
            try:
                _print(one, other, _links(translator, one, other, aligner, options), options)
            except UserError as error:
                failed = 1
                tell(f"line {number + 1}: {error}", quiet=False)
                print("{}" if options.format == "json" else "")
    return failed


def _translator(model: str) -> Any:
    from saccade.pipelines.translator import Translator

    pipeline = load_model(model, None)
    if not isinstance(pipeline, Translator):
        raise WrongUse(f"{model} is no translator: it has no translations to align")
    return pipeline


def _links(translator: Any, source: str, target: str, aligner: "Aligner | None", options: AlignOptions) -> "Links":
    from saccade.evaluate.alignment import diagonal
    from saccade.explaining.aligning import read_pair

    if not source.split() or not target.split():
        return frozenset()
    if translator is None or aligner is None:
        return diagonal(len(source.split()), len(target.split()))
    return read_pair(translator, source, target, tokenized=options.tokenized).links(aligner)


def _print(source: str, target: str, links: "Links", options: AlignOptions) -> None:
    from saccade.evaluate.alignment import write_links

    if options.format == "text":
        print(write_links(links, first=options.first))
        return
    pairs = [[i + options.first, j + options.first] for i, j in sorted(links)]
    print(json.dumps({"source": source, "target": target, "links": pairs}, ensure_ascii=False))


def _pairs(source: str, target: str | None) -> list[tuple[str, str]]:
    from saccade.explaining.inputs import read_table

    if target is None:
        if not source.endswith((".tsv", ".csv", ".tsv.xz")) or not Path(source).is_file():
            raise WrongUse("the translation is missing: a text and its translation, two files, or one table")
        found = [(row[0], row[1]) for row in read_table(Path(source)) if len(row) > 1]
    elif Path(source).is_file() and Path(target).is_file():
        left, right = (Path(name).read_text("utf-8").splitlines() for name in (source, target))
        if len(left) != len(right):
            raise UserError(f"{source} has {len(left):,} lines and {target} {len(right):,}: they must be equal")
        found = list(zip(left, right, strict=True))
    else:
        found = [(source, target)]
    if not found:
        raise UserError(f"{source}: no sentence in it")
    return found


def _layers(translator: Any, pair: tuple[str, str]) -> "list[AttentionLayer]":
    from saccade.explaining.places import attention_layers

    return [one for one in attention_layers(translator, translator.given(*pair)) if one.kind == "cross"]


def _aligner(translator: Any, pair: tuple[str, str], options: AlignOptions) -> "Aligner":
    """What was asked for; else the head that was taught to align; else the layer that is drawn, all its heads."""
    from saccade.explaining.aligning import WHEN, Aligner
    from saccade.explaining.places import head_named

    layers = _layers(translator, pair)
    taught = translator.alignment
    if options.heads is None and taught is not None:
        return Aligner(((layers[taught.layer - 1].name, taught.head - 1),), "reading")
    if options.heads is None:
        layer = layers[min(translator.layer, len(layers)) - 1]
        return Aligner(tuple((layer.name, head) for head in range(layer.heads)))
    heads, _, when = options.heads.partition("@")
    if (when or WHEN[0]) not in WHEN:
        raise WrongUse(f"--heads {options.heads}: @{when} is neither @{' nor @'.join(WHEN)}")
    return Aligner(tuple(head_named(one.strip(), layers) for one in heads.split(",")), when or WHEN[0])


def _read_all(translator: Any, pairs: Sequence[tuple[str, str]], options: AlignOptions) -> "list[WordPair]":
    from saccade.explaining.aligning import read_pair

    with progress_bar("reading", quiet=options.quiet) as bar:
        found = []
        for number, (one, other) in enumerate(pairs):
            bar(number, len(pairs))
            found.append(read_pair(translator, one, other, tokenized=options.tokenized))
    return found


def _choose(translator: Any, options: AlignOptions) -> int:
    from saccade.explaining.aligning import choose_by_words

    assert options.choose is not None
    if translator is None:
        raise WrongUse("--choose: the diagonal has no heads")
    pairs = _pairs(str(options.choose), None)[:500]
    chosen = choose_by_words(_read_all(translator, pairs, options))
    told = chosen.spelt(_layers(translator, pairs[0]))
    print(json.dumps({"heads": told, "sentences": len(pairs)}) if options.format == "json" else f"--heads {told}")
    return 0


def _score(model: str, options: AlignOptions) -> int:
    from saccade.evaluate.alignment import GoldAlignment, alignment_scores, diagonal
    from saccade.explaining.aligning import choose_by_gold, evaluate_alignment
    from saccade.explaining.inputs import read_table

    assert options.gold is not None
    rows = [row for row in read_table(options.gold) if len(row) >= 3]
    if not rows:
        raise UserError(f"{options.gold}: no rows of sentence, translation, sure and possible links in it")
    pairs = [(row[0], row[1]) for row in rows]
    gold = [GoldAlignment.of(row[2], row[3] if len(row) > 3 else "", first=1) for row in rows]
    plain = [diagonal(len(one.split()), len(other.split())) for one, other in pairs]
    results: dict[str, Any] = {f"diagonal, all {len(pairs)}": alignment_scores(plain, gold)}
    if model != DIAGONAL:
        translator = _translator(model)
        if len(pairs) < 2 * DEV and options.heads is None:
            raise UserError(f"{options.gold}: {len(pairs)} sentences; {2 * DEV} are needed, or name --heads")
        read = _read_all(translator, pairs, options)
        dev = 0 if options.heads else DEV
        chosen = _aligner(translator, pairs[0], options) if options.heads else choose_by_gold(read[:dev], gold[:dev])
        told = chosen.spelt(_layers(translator, pairs[0]))
        default = _aligner(translator, pairs[0], AlignOptions())
        rest = f"the other {len(pairs) - dev}" if dev else f"all {len(pairs)}"
        results[f"diagonal, {rest}"] = alignment_scores(plain[dev:], gold[dev:])
        known = "the head taught to align" if translator.alignment else "the layer drawn"
        results[f"{known}, {rest}"] = evaluate_alignment(read[dev:], gold[dev:], default)
        how = f"chosen on the first {dev}" if dev else "as asked"
        results[f"{told} ({how}), {rest}"] = evaluate_alignment(read[dev:], gold[dev:], chosen)
    if options.format == "json":
        print(json.dumps({name: vars(one) for name, one in results.items()}))
    else:
        for name, one in results.items():
            print(f"{one}   {name}")
    return 0
