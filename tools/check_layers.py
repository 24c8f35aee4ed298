#!/usr/bin/env python3
"""Checks that every #include "quire/..." points from a folder to one listed as allowed for it below."""
import pathlib
import re
import sys

# folder -> folders its files may include, beside itself. Lower layers only, never sideways.
L1 = ["base", "tensor"]
L2 = L1 + ["backend", "checkpoint", "kv", "sched", "text"]
L4 = L2 + ["weights"]
L6 = L4 + ["nn", "models", "runner"]
L7 = L6 + ["backend/cpu", "backend/dryrun", "engine", "hub"]
ALLOWED = {
    "base": [],
    "tensor": ["base"],
    "kv": ["base"],
    "text": ["base"],
    "backend": L1,
    "backend/cpu": L1 + ["backend"],
    "backend/dryrun": L1 + ["backend"],
    "checkpoint": L1 + ["text"],
    "sched": ["base", "kv"],
    "weights": L1 + ["backend", "checkpoint"],
    "nn": L1 + ["backend", "checkpoint", "weights"],
    "models": L1 + ["backend", "checkpoint", "weights", "nn"],
    "runner": L1 + ["backend", "checkpoint", "kv", "sched", "weights", "nn", "models"],
    "engine": ["base", "kv", "sched", "text", "runner"],
    "hub": ["base"],
    "plan": L6 + ["backend/cpu", "backend/dryrun"],
    "llm": L7,
    "server": ["base", "tensor", "checkpoint", "text", "sched", "runner", "engine", "llm"],
    "bench": L7 + ["llm"],
    "apps": L7 + ["plan", "llm", "server", "bench"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"quire/([^"]+)"')


def folder_of(path: str) -> str:
    """The longest entry of ALLOWED that `path` (below quire/) lies in, e.g. backend/cpu/avx2/x.h -> backend/cpu."""
    parts = path.split("/")[:-1]
    while parts and "/".join(parts) not in ALLOWED:
        parts.pop()
    return "/".join(parts)


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent / "quire"
    wrong = 0
    for file in sorted(p for p in root.rglob("*") if p.suffix in (".cc", ".h", ".inc")):
        here = file.relative_to(root).as_posix()
        source = folder_of(here)
        if not source:
            print(f"quire/{here}: its folder is not in the table of tools/check_layers.py")
            wrong += 1
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if found := INCLUDE.match(line):
                target = folder_of(found.group(1))
                if target != source and target not in ALLOWED[source]:
                    print(f"quire/{here}:{number}: {source} may not include {found.group(1)}")
                    wrong += 1
    print("layers: %s" % ("ok" if not wrong else f"{wrong} forbidden"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
