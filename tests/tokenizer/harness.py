"""Runs `quire tokenize` over requests and compares its answers with a reference."""
import json
import subprocess


class Program:
    """`quire tokenize` with the arguments that name one tokenizer."""

    def __init__(self, program: str, *arguments: str):
        self.command = [program, "tokenize", *arguments]

    def run(self, requests: list[dict]) -> list:
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        done = subprocess.run(self.command, input=lines.encode(), capture_output=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr.decode()
        answers = [json.loads(line) for line in done.stdout.splitlines()]  # of bytes: at newlines only
        assert len(answers) == len(requests)
        return answers

    def encode(self, texts: list[str], add_special_tokens=False, parse_special=True) -> list[list[int]]:
        return self.run([{"text": text, "add_special_tokens": add_special_tokens, "parse_special": parse_special}
                         for text in texts])

    def decode(self, lists: list[list[int]], skip_special_tokens: bool) -> list[str]:
        return self.run([{"ids": ids, "skip_special_tokens": skip_special_tokens} for ids in lists])


def encode_with(reference, texts: list[str], add_special_tokens=False, parse_special=True) -> list[list[int]]:
    """The ids that HF's tokenizer gives under the same options."""
    reference.encode_special_tokens = not parse_special
    try:
        return [e.ids for e in reference.encode_batch_fast(texts, add_special_tokens=add_special_tokens)]
    finally:
        reference.encode_special_tokens = False


def assert_same(inputs, ours, expected):
    wrong = [(i, o, e) for i, o, e in zip(inputs, ours, expected, strict=True) if o != e]
    shown = "\n".join(f"{ascii(i)}\n  ours {ascii(o)}\n  HF   {ascii(e)}" for i, o, e in wrong[:3])
    assert not wrong, f"{len(wrong)} of {len(inputs)} differ:\n{shown}"
