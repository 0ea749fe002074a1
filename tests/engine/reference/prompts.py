"""The prompts of the default model's reference: text in several languages, code, and lengths from 1 to 2,000 tokens.

Knows no model: a prompt is cut from one long list of token ids, which any tokenizer of the model gives alike.
"""

from collections.abc import Callable

TEXTS = (
    "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n",
    "The history of computing began long before the first electronic machines. Merchants counted on their fingers, "
    "then on tables ruled in sand, then on beads that slid along wires. Each of these tools did the same thing: it "
    "kept a number outside the head, where it could be looked at again. ",
    "def binary_search(items, wanted):\n    low, high = 0, len(items)\n    while low < high:\n"
    "        middle = (low + high) // 2\n        if items[middle] < wanted:\n            low = middle + 1\n"
    "        else:\n            high = middle\n    return low\n\n\n",
    "Les enfants couraient dans la rue, et le vieux boulanger, qui les regardait depuis sa porte, pensait à l'été où "
    "il avait leur âge. Rien n'avait changé, sauf lui. ",
    '#include <stdio.h>\n\nint main(void) {\n    for (int i = 0; i < 10; i++) {\n        printf("%d\\n", i * i);\n'
    "    }\n    return 0;\n}\n",
    "Am Morgen lag Nebel über dem Fluss. Die Fähre kam eine halbe Stunde zu spät, und niemand am Ufer schien sich "
    "darüber zu wundern. ",
    "SELECT customers.name, SUM(orders.total) AS total FROM customers JOIN orders ON orders.customer_id = "
    "customers.id WHERE orders.created > '2023-01-01' GROUP BY customers.name ORDER BY total DESC LIMIT 10;\n",
    "El agua del pozo estaba fría. María bajó el cubo despacio, contando las vueltas de la cuerda: una, dos, tres, "
    "hasta veinte. ",
    "今日は天気がいいので、公園へ行きましょう。桜の花がとてもきれいです。",
    "Вечером они сидели у реки и говорили о том, как быстро прошло лето. ",
    "1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, ",
    '{"name": "axon", "kind": "server", "ports": [8000, 9000], "tags": {"region": "eu", "tier": "free"}}\n',
    "Water boils at 100 degrees Celsius at sea level. On a mountain the air is thinner, so the water boils at a lower "
    "temperature, and an egg takes longer to cook. ",
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nWrite a haiku about the sea."
    "<|im_end|>\n<|im_start|>assistant\n",
    "A theorem is a statement that has been proved. Let n be an even number greater than two. Then n = 2k for some "
    "integer k, and therefore n is not prime, because it is divisible by 2. ",
)
LENGTHS = (1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 48, 64, 90, 127, 129, 200, 255, 300, 411, 513, 700, 900, 1200, 1600, 2000)
NUM_TOKENS = 64
"""Of an answer."""


def make_prompts(encode: Callable[[str], list[int]]) -> list[list[int]]:
    """Every text by itself; then one prompt of each length, each starting with another text."""
    pieces = [encode(text) for text in TEXTS]
    prompts = list(pieces)
    for index, length in enumerate(LENGTHS):
        ids: list[int] = []
        while len(ids) < length:
            ids += pieces[(index + len(ids)) % len(pieces)]
        prompts.append(ids[:length])
    return prompts
