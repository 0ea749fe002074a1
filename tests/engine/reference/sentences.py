"""Texts for tokenizers: spaces of every kind, digits, accents, code, and characters that no vocabulary has."""

from tests.engine.reference.prompts import TEXTS

SENTENCES = (
    *TEXTS,
    "Hello world",
    " leading and trailing ",
    "two  spaces,   three, and a tab\tand\n\nnew lines\r\n",
    "1234567890 3.14159 2024-01-31",
    "naïve café Ångström straße",
    "emoji 🚀 and 漢字 and عربى and \u200b zero width",
    "x" * 50 + "aaaaaaa" + "the the the",
    "don't can't we'll I'VE",
    "for (int i = 0; i < n; ++i) { total += items[i]; }",
    "e\u0301 is not é",
    "aaaabbbbaaabbb abababab thethethe eeeeeeeee",
    "",
)
