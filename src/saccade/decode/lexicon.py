"""Which words may be written: a search that keeps to a list of words, and to those of the text it answers.

The letters under way are followed through a trie of the list and one of the text; case does not matter. What is no
letter ends a word, and may stand only where a word is whole. So nobody writes a word that does not exist, and every
word can be left as it was typed; but one that is not on the list, and no name, has its price.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np

from saccade.tokens.vocabulary import Vocabulary

APOSTROPHE, OTHER, BREAK = 26, 27, 28
"""Kinds of tokens beside the 26 letters: OTHER are parts of letters that are not ASCII, BREAK all that is no letter."""
KINDS = 29
DEAD, FREE = 0, 1
"""Nodes of every trie: where no word goes, and a word with a letter that is not ASCII, which is not followed."""
WORD = re.compile(r"(?:[A-Za-z']|[^\x00-\x7f])+")


class Trie:
    """Words letter by letter; several lists may stand side by side, each below a root of its own."""

    def __init__(self) -> None:
        self.ways: dict[int, int] = {}
        """Node times KINDS, plus a kind -> the node behind it."""
        self.count = 2
        self.roots: list[int] = []
        self.whole: set[int] = set()

    def root(self) -> int:
        """A new list."""
        self.roots.append(self._node())
        return self.roots[-1]

    def add(self, root: int, word: str) -> int:
        """Put a word, in lower case, on a list; the node where it ends."""
        node = root
        for letter in word:
            kind = kind_of(letter)
            if kind == OTHER:
                self.ways[node * KINDS + OTHER] = node = FREE
                break
            key = node * KINDS + kind
            node = self.ways.get(key) or self.ways.setdefault(key, self._node())
        self.whole.add(node)
        return node

    def table(self) -> np.ndarray:
        """[nodes, KINDS]: the node behind each node and kind, or DEAD. Behind a BREAK stands any other: it only says
        that the word may end there."""
        table = np.full((self.count, KINDS), DEAD, dtype=np.int32)
        table.reshape(-1)[list(self.ways)] = list(self.ways.values())
        whole = list(self.whole)
        # A quotation mark may close behind a word: "dogs'" is whole because "dogs" is.
        behind = table[whole, APOSTROPHE]
        table[behind[behind != DEAD], BREAK] = FREE
        table[whole, APOSTROPHE] = np.where(behind == DEAD, FREE, behind)
        table[whole, BREAK] = FREE
        for kind, to in ((APOSTROPHE, self.roots), (OTHER, FREE), (BREAK, FREE)):
            table[self.roots, kind] = to
        table[FREE] = FREE
        table[DEAD] = DEAD
        return table

    def _node(self) -> int:
        self.count += 1
        return self.count - 1


def kind_of(letter: str) -> int:
    """Of a letter in lower case."""
    if "a" <= letter <= "z":
        return ord(letter) - ord("a")
    return APOSTROPHE if letter == "'" else BREAK if letter < "\x80" else OTHER


class Lexicon:
    """A list of words; it guides a search whose tokens are bytes or characters."""

    def __init__(self, words: Iterable[str], vocabulary: Vocabulary, price: float = 0.0) -> None:
        """`price`: what a typed word that is not on the list costs when it is left, in natural logarithms."""
        self.words = frozenset(words)
        self.price = price
        self.guides = vocabulary.speller is None
        """Whether it can follow what is written, letter by letter."""
        if not self.guides:
            return
        trie = Trie()
        self.root = trie.root()
        for word in self.words:
            trie.add(self.root, word)
        self.table = trie.table()
        # Marks and bytes that are no text of their own are spelt by a sign that is not ASCII.
        pieces = vocabulary.pieces(range(len(vocabulary)))
        self.kinds_V = np.array([kind_of(piece.lower()) if len(piece) == 1 else BREAK for piece in pieces])

    def knows(self, word: str, *, opens: bool) -> bool:
        """Whether a typed word may be left without a price: a word of the list, a single letter, or a name. A capital
        says nothing where a text `opens`."""
        return word.lower() in self.words or len(word) == 1 or (not opens and not word[0].islower())

    def guide(self, texts: Sequence[str], prefixes: Sequence[Sequence[int]], rows: int) -> "Guide":
        """Follows the answers to these texts from their prefixes on, `rows` of each side by side."""
        guide = Guide(self, texts, rows)
        for place in range(max(map(len, prefixes), default=0)):
            going = np.array([len(prefix) > place for prefix in prefixes]).repeat(rows)
            tokens = np.array([prefix[place] if len(prefix) > place else 0 for prefix in prefixes]).repeat(rows)
            guide.follow(np.arange(len(going)), tokens, going)
        return guide


class Guide:
    """Where in a word each row of a search is."""

    def __init__(self, lexicon: Lexicon, texts: Sequence[str], rows: int) -> None:
        typed = Trie()
        strange: set[int] = set()
        for text in texts:
            root = typed.root()
            for found in WORD.finditer(text):
                node = typed.add(root, found[0].lower())
                if not lexicon.knows(found[0].strip("'") or "'", opens=found.start() == 0):
                    strange.add(node)
        self.lexicon, self.typed = lexicon, typed.table()
        self.strange = np.zeros(len(self.typed), dtype=bool)
        self.strange[list(strange - {FREE})] = True
        self.typed_roots_B = np.repeat(np.array(typed.roots), rows)
        self.typed_B, self.known_B = self.typed_roots_B, np.full(len(texts) * rows, lexicon.root)

    def gains(self) -> np.ndarray:
        """[B, V]: what is added to the log-probability of each token each row may go on with: nothing, the price of a
        strange word that ends, or minus infinity where the row may not go on so."""
        known_BK = self.lexicon.table[self.known_B] != DEAD
        gains_BK = np.where(known_BK | (self.typed[self.typed_B] != DEAD), np.float32(0), np.float32(-np.inf))
        gains_BK[self.strange[self.typed_B] & ~known_BK[:, BREAK], BREAK] -= self.lexicon.price
        gains_BV: np.ndarray = gains_BK[:, self.lexicon.kinds_V]
        return gains_BV

    def follow(self, rows_B: np.ndarray, tokens_B: np.ndarray, going_B: np.ndarray | None = None) -> None:
        """Row i goes on from row rows_B[i] with tokens_B[i]; those that are not `going_B` stay where they are."""
        before = self.known_B[rows_B], self.typed_B[rows_B]
        kinds_B = self.lexicon.kinds_V[tokens_B]
        ended_B = kinds_B == BREAK
        self.typed_roots_B = self.typed_roots_B[rows_B]
        known_B = np.where(ended_B, self.lexicon.root, self.lexicon.table[before[0], kinds_B])
        typed_B = np.where(ended_B, self.typed_roots_B, self.typed[before[1], kinds_B])
        # Only a prefix that somebody asked for leads away from all words.
        known_B = np.where((known_B == DEAD) & (typed_B == DEAD), FREE, known_B)
        if going_B is not None:
            known_B, typed_B = np.where(going_B, known_B, before[0]), np.where(going_B, typed_B, before[1])
        self.known_B, self.typed_B = known_B, typed_B
