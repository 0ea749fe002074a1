"""Writes the vectors that sentence-transformers gives for the real MiniLM. Not a test: run by hand when texts change.

In an environment of its own: ``pip install sentence-transformers==6.2.0 numpy``, then
``python tests/engine/encoder/make_golden.py MODEL_FOLDER > tests/golden/minilm_vectors.json``.
Each vector is kept as int8 numbers over its largest one, which costs a cosine less than 0.0001, and its first eight
numbers as they are.
"""

import base64
import importlib
import json
import sys

WORDS = (
    "Das Modell liest jeden Satz als Ganzes und gibt einen Vektor zurück, den man vergleichen kann.",
    "Le chat dort sur le canapé pendant que la pluie tombe sur le toit.",
    "The quick brown fox jumps over the lazy dog near the river bank.",
)
TEXTS = [
    "a",
    "cat",
    "The cat sits outside.",
    "A man is playing guitar.",
    "The new movie is awesome!",
    "Ein Mann spielt Gitarre.",
    "Un homme joue de la guitare.",
    "Un hombre toca la guitarra.",
    "一个男人在弹吉他。",
    "男の人がギターを弾いている。",
    "رجل يعزف على الجيتار",
    "Мужчина играет на гитаре.",
    "एक आदमी गिटार बजा रहा है।",
    "def add(a, b):\n    return a + b",
    "SELECT name FROM users WHERE id = 42;",
    "e = mc² and π ≈ 3.14159",
    "🎸🎶 rock'n'roll!!!",
    "Antidisestablishmentarianism " * 4,
    " ".join(WORDS[:1] * 4),
    " ".join(WORDS * 2),
    " ".join(WORDS * 4),
    "word " * 200,
    "word " * 254,
    "ALL CAPS, and    many     spaces\tand\nlines",
]
"""Texts of 3 to 256 tokens in several languages, and one of 270, which is cut."""


def main() -> None:
    model = importlib.import_module("sentence_transformers").SentenceTransformer(sys.argv[1], device="cpu")
    vectors = model.encode(TEXTS, batch_size=1)
    rows = []
    for vector in vectors:
        numbers = (vector * (127 / abs(vector).max())).round().astype("int8")
        rows.append(
            {
                "first": [round(float(each), 7) for each in vector[:8]],
                "int8": base64.b64encode(numbers.tobytes()).decode(),
            }
        )
    json.dump(rows, sys.stdout, indent=0)


if __name__ == "__main__":
    main()
