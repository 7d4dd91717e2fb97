"""A tokenizer.json is checked before the library sees it, which would make a table as long as its highest id.

What the library does with parts that it does not know, or that are crafted (patterns that grow when they are compiled,
tables that are unpacked), is its own affair: such parts do not reach it. Whether what it read is the tokenizer of
this version is checked afterwards, in `vocabulary.py`.
"""

from collections.abc import Iterator
from typing import Any

from saccade.config import Table

MOST_TOKENS = 2_000_000
MOST_ADDED = 1000
READ_ANYHOW = {"model", "added_tokens", "version", "truncation", "padding"}
"""Parts that are checked below, or only hold numbers and are switched off."""


def unreadable(table: Any, kind: str, expected: Table) -> str | None:
    """What is wrong with a file, if anything; `expected` is the tokenizer of its kind, without words."""
    if not isinstance(table, dict) or not isinstance(table.get("model"), dict):
        return "not a tokenizer: it has no table `model`"
    model = table["model"]
    # Every name of a part and every pattern is a string, and all of ours are known.
    for part in sorted(table.keys() - READ_ANYHOW):
        if not set(_strings(table[part])) <= set(_strings(expected.get(part))):
            return f"its {part} is not that of a {kind} of this version"
    return _wrong_words(model.get("vocab"), table.get("added_tokens", [])) or _wrong_merges(model.get("merges", []))


def _wrong_words(words: Any, added: Any) -> str | None:
    if not isinstance(words, dict) or not words:
        return "not a tokenizer: it has no table `vocab`"
    if len(words) > MOST_TOKENS:
        return f"{len(words):,} tokens; at most {MOST_TOKENS:,} are read"
    ids = words.values()
    if not all(type(i) is int for i in ids) or sorted(ids) != list(range(len(words))):
        return f"its {len(words)} tokens do not have the ids 0 to {len(words) - 1}"
    if not isinstance(added, list) or len(added) > MOST_ADDED:
        return f"its added_tokens are not a list of at most {MOST_ADDED:,}"
    for token in added:
        i = token.get("id") if isinstance(token, dict) else None
        if type(i) is not int or not 0 <= i < len(words):
            return f"an added token has the id {str(i)[:20]}, but there are {len(words)} tokens"
    return None


def _wrong_merges(merges: Any) -> str | None:
    """Pairs of tokens; older files write a pair as one string."""
    if isinstance(merges, list) and all(
        isinstance(pair, str)
        or (isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, str) for one in pair))
        for pair in merges
    ):
        return None
    return "its merges are not pairs of tokens"


def _strings(value: Any) -> Iterator[str]:
    """All strings within a part, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)
