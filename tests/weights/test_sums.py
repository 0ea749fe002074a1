"""SHA256SUMS as people write it."""

from axon.weights.sums import parse_sums

DIGEST = "ab" * 32


def test_lines_of_sha256sum_are_read_and_others_passed_over() -> None:
    text = f"# made by hand\n{DIGEST}  a.safetensors\n{DIGEST} *b c.json\n{DIGEST}  ./d.json\n\nshort  e.json\n"
    assert parse_sums(text) == dict.fromkeys(("a.safetensors", "b c.json", "d.json"), DIGEST)
