#!/usr/bin/env python3
"""Checks what a file must be: at most 600 lines of source, a header that opens with what its type is for, no unfinished marks."""
import pathlib
import re
import subprocess
import sys

LIMIT = 600
SOURCE = {".cc", ".h", ".inc", ".py", ".cu", ".cuh"}
MARKS = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout
    wrong = []
    for name in listed.splitlines():
        path = root / name
        if path.suffix not in SOURCE or not path.exists():
            continue
        lines = path.read_text().splitlines()
        if len(lines) > LIMIT:
            wrong.append(f"{name}: {len(lines)} lines, at most {LIMIT}")
        if path.suffix == ".h" and not (lines and lines[0].startswith("// ")):
            wrong.append(f"{name}: a header opens with one sentence on what its type is for")
        wrong += [f"{name}:{n}: unfinished mark" for n, line in enumerate(lines, 1) if MARKS.search(line)]
    print("\n".join(wrong) if wrong else "files: ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
