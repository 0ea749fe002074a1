"""Writes the golden set of the real MiniLM with sentence-transformers. Not a test: run by hand when the texts change.

In an environment of its own: ``pip install sentence-transformers==6.2.0 numpy``, then, from the repository,
``python -m tests.engine.encoder.make_golden_set MODEL_FOLDER``.
Vectors are kept as float16: that costs a cosine less than 0.000001, and the file has 154 kB. Orders of documents are
kept as sentence-transformers found them in float32.
"""

import importlib
import json
import sys
from pathlib import Path

import numpy as np

from tests.engine.encoder.golden_texts import DOCUMENTS, MAX_TOKENS, QUERIES, texts

FOLDER = Path(__file__).parents[2] / "golden"
VECTORS, ORDERS = FOLDER / "minilm_set.npy", FOLDER / "minilm_orders.json"
_LEAST_GAP = 1e-5
"""Scores of neighbours in an order differ by at least this much, so that the order is no accident of rounding."""


def main() -> None:
    package = importlib.import_module("sentence_transformers")
    model = package.SentenceTransformer(sys.argv[1], device="cpu")
    model.max_seq_length = MAX_TOKENS
    vectors = model.encode(texts(), batch_size=1)
    np.save(VECTORS, vectors.astype(np.float16))
    scores = package.util.cos_sim(
        model.encode(list(QUERIES), batch_size=1), model.encode(list(DOCUMENTS), batch_size=1)
    ).numpy()
    orders = np.argsort(-scores, axis=1)
    gaps = -np.diff(np.take_along_axis(scores, orders, axis=1), axis=1)
    assert gaps.min() > _LEAST_GAP, f"two documents are too near each other: {gaps.min()}"
    ORDERS.write_text(json.dumps(orders.tolist()) + "\n")


if __name__ == "__main__":
    main()
