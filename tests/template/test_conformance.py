#!/usr/bin/env python3
"""Renders a corpus of chat templates with quire and with Python's jinja2 and compares them byte for byte.

usage: test_conformance.py COMMAND...   e.g. test_conformance.py build/release/quire render
COMMAND is called with `--chat-template FILE --jsonl` and answers one JSON line for each request line.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SHARED = HERE.parent.parent.parent / "shared"
SKIPPED = 77

try:
    import reference
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(SKIPPED)
import chats
import corpus
import model_templates


def ask(command, source, requests):
    """As reference.render, from the program under test."""
    with tempfile.NamedTemporaryFile("w", suffix=".jinja", encoding="utf-8", newline="") as file:
        file.write(source)
        file.flush()
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        done = subprocess.run(command + ["--chat-template", file.name, "--jsonl"], input=lines.encode(),
                              capture_output=True, timeout=60)
    if done.returncode == 1:
        return [("load", done.stderr.decode().strip())] * len(requests)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.decode()[-500:]}")
    answers = [json.loads(line) for line in done.stdout.decode().split("\n") if line]
    if len(answers) != len(requests):
        raise RuntimeError(f"{len(requests)} requests, {len(answers)} answers")
    return [("text", answer["text"]) if "text" in answer else ("error", answer["error"]) for answer in answers]


def agrees(expected, found):
    if expected[0] == "text":
        return found == expected
    if expected[0] == "raised":  # the template's own message reaches the client as it is
        return found == ("error", expected[1])
    return found[0] in ("load", "error")


def shared_templates():
    """The chat templates of real models, where they are at hand."""
    folder = SHARED / "data" / "tokenizers"
    if not folder.is_dir():
        print(f"notice: {folder} is absent; real models' templates are not compared")
    for path in sorted(folder.glob("*/tokenizer_config.json")):
        template = json.loads(path.read_text(encoding="utf-8")).get("chat_template")
        if template:
            yield path.parent.name, template


def main():
    command = sys.argv[1:]
    if not command:
        sys.exit(__doc__)
    all_chats = list(chats.CHATS.values())
    data = {"messages": [{"role": "user", "content": "x"}], "chat_template_kwargs": chats.DATA}
    cases = [(name, source, [data]) for name, source in corpus.templates()]
    cases += [(name, source, all_chats) for name, source in model_templates.TEMPLATES.items()]
    cases += [(name, source, all_chats) for name, source in shared_templates()]
    compared = failed = errors = 0
    for name, source, requests in cases:
        expected = reference.render(source, requests)
        found = ask(command, source, requests)
        for request, want, have in zip(requests, expected, found):
            compared += 1
            errors += want[0] != "text"
            if not agrees(want, have):
                failed += 1
                print(f"FAIL {name}\n  template {source[:300]!r}\n  request {json.dumps(request)[:200]}\n"
                      f"  expected {want}\n  found    {have}")
    print(f"{len(cases)} templates, {compared} renderings compared ({errors} of them errors), {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
