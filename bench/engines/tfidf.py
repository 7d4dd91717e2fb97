"""TF-IDF and logistic regression, by scikit-learn: what is trained on, chosen by and tested with is Saccade's.

`python -m bench.engines.tfidf RECIPE DATA…` prints one line of JSON. Features and C are chosen on the part to choose
by; the test part is looked at once, by the model that was chosen.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sklearn
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from saccade.config import read_toml
from saccade.data.table import Examples, TableConfig, read_parts
from saccade.tasks.recipes import recipe_path

FEATURES: dict[str, dict[str, Any]] = {
    # Words of one letter too, which its own pattern leaves out: I and a matter to grammar.
    "words 1-2": {"analyzer": "word", "ngram_range": (1, 2), "token_pattern": r"(?u)\b\w+\b"},
    "characters 2-5": {"analyzer": "char_wb", "ngram_range": (2, 5)},
}
STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""C, the inverse of how strongly weights are held down."""


@dataclass(frozen=True)
class Fitted:
    features: str
    strength: float
    valid: float
    """Accuracy on the part to choose by, in percent."""
    vectorizer: Any
    model: Any


def fit_all(train: Examples, valid: Examples) -> Iterator[Fitted]:
    """Every kind of features with every C."""
    for features, options in FEATURES.items():
        vectorizer = TfidfVectorizer(sublinear_tf=True, **options).fit([*train.texts, *(train.seconds or [])])
        known, held = represent(vectorizer, train), represent(vectorizer, valid)
        for strength in STRENGTHS:
            # Exact and the same each time for two classes, which is what there is.
            model = LogisticRegression(C=strength, solver="liblinear", random_state=1, max_iter=1000)
            model.fit(known, train.labels)
            yield Fitted(features, strength, 100 * float(model.score(held, valid.labels)), vectorizer, model)


def represent(vectorizer: Any, examples: Examples) -> Any:
    """A row for each text; of pairs the two rows, and their product, which is what both have."""
    first = vectorizer.transform(examples.texts)
    if examples.seconds is None:
        return first
    second = vectorizer.transform(examples.seconds)
    return sparse.hstack([first, second, first.multiply(second)]).tocsr()


def choose(tried: Sequence[Fitted]) -> Fitted:
    """The most right on the part to choose by; of equals the first, whose weights are held down more."""
    return max(tried, key=lambda one: one.valid)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("recipe")
    parser.add_argument("data", type=Path, nargs="+")
    given = parser.parse_args()
    table = TableConfig.read(read_toml(recipe_path(given.recipe))["data"], where=given.recipe)
    parts = read_parts(table, given.data)
    if parts.test is None:
        raise SystemExit(f"{given.recipe} names no test part")
    best = choose(list(fit_all(parts.train, parts.valid)))
    result = {
        "engine": f"TF-IDF + logistic regression, scikit-learn {sklearn.__version__}",
        "setting": f"{best.features}, C = {best.strength:g}",
        "valid": best.valid,
        "classes": parts.train.classes,
        "gold": parts.test.labels,
        "predicted": best.model.predict(represent(best.vectorizer, parts.test)).tolist(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
