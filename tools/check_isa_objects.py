#!/usr/bin/env python3
"""Checks the object files of the instruction-set folders (.../avx2/x.cc.o, .../avx512/x.cc.o).

Symbols: every weak one lies in quire::backend::cpu::<level>. The linker keeps one copy of a weak function, and a copy
compiled for AVX-512 must never serve a processor without.
Spills (--spills, for optimised g++ builds): how often the inner loops of matmul tiles and of the peaks' probes store
vector registers to the stack and load them from there, as shares of their products: see ACCEPTED. With AVX-512, loops of
dot products never do.
"""
import argparse
import pathlib
import re
import subprocess
import sys

LEVELS = {"avx2", "avx512"}
WEAK = set("VvWwu")
DOTS = ("vpdpbusd", "vdpbf16ps", "vpmadd")
MULTIPLY_ADDS = ("vfmadd",)
# (level, whether the loop is of dot products): stores, loads for each product. A tile of 6 x 4 fp32 sums leaves 8 of 32
# registers for codes, scales and constants; AVX2 has 16 in all.
ACCEPTED = {("avx512", True): (0, 0), ("avx512", False): (1 / 14, 1 / 3),
            ("avx2", True): (1 / 5, 1 / 5), ("avx2", False): (1 / 10, 1 / 3)}
STACK_STORE = re.compile(r"v\w+\s+%[xyz]mm\d+,[^%]*\(%r[sb]p")
STACK_LOAD = re.compile(r"v\w+\s+(\$\w+,)?[^%,]*\(%r[sb]p[^)]*\),.*%[yz]mm")
JUMP = re.compile(r"j\w+\s+([0-9a-f]+)")
# Tiles of matmuls, and the loops that measure peaks.
TILE = re.compile(r"(direct_tile|grouped_tile|repeat)<")


def level_of(path: str) -> str:
    """The level folder an object belongs to, or nothing."""
    return next((part for part in reversed(pathlib.Path(path).parts) if part in LEVELS), "")


def foreign_symbols(nm: str, path: str, level: str) -> list[str]:
    """Weak symbols outside the level's namespace. Names are Itanium-mangled: _ZN5quire7backend3cpu6avx512..."""
    inside = re.compile(r"^_Z(GV|T[VTIS])?Z?N[KVrRO]*5quire7backend3cpu%d%s" % (len(level), level))
    out = subprocess.run([nm, path], capture_output=True, text=True, check=True).stdout
    wrong = []
    for line in out.splitlines():
        *_, kind, name = line.split()
        runtime = name.startswith("__") or name.startswith("DW.ref.")  # the compiler's own
        if kind in WEAK and not runtime and not inside.match(name):
            wrong.append(name)
    return wrong


def functions(objdump: str, path: str):
    """Yields (name, [(address, instruction)]) of every function."""
    command = [objdump, "-d", "-C", "--no-show-raw-insn", path]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    name, body = "", []
    for line in out.splitlines():
        if header := re.match(r"^[0-9a-f]+ <(.*)>:$", line):
            if name:
                yield name, body
            name, body = header.group(1), []
        elif found := re.match(r"^\s+([0-9a-f]+):\s+(.*)$", line):
            body.append((int(found.group(1), 16), found.group(2)))
    if name:
        yield name, body


def innermost_loops(body):
    """Instructions of each loop that holds no other loop: a backward jump and what lies between."""
    addresses = {address for address, _ in body}
    spans = []
    for address, text in body:
        if jump := JUMP.match(text):
            target = int(jump.group(1), 16)
            if target <= address and target in addresses:
                spans.append((target, address))
    for begin, end in spans:
        if not any((b, e) != (begin, end) and begin <= b and e <= end for b, e in spans):
            yield [text for address, text in body if begin <= address <= end]


def spills(objdump: str, path: str, level: str) -> tuple[int, list[str]]:
    """Loops looked at, and complaints about them."""
    count, wrong = 0, []
    for name, body in functions(objdump, path):
        if not TILE.search(name):
            continue
        loops = list(innermost_loops(body))
        dots = [sum(text.startswith(DOTS) for text in loop) for loop in loops]
        work = dots if any(dots) else [sum(text.startswith(MULTIPLY_ADDS) for text in loop) for loop in loops]
        limits = ACCEPTED[level, any(dots)]
        for loop, amount in zip(loops, work):
            if amount == 0 or amount < max(work) // 2:
                continue
            count += 1
            found = [sum(bool(pattern.match(text)) for text in loop) for pattern in (STACK_STORE, STACK_LOAD)]
            if any(number > amount * limit for number, limit in zip(found, limits)):
                wrong.append(f"{name}: {found[0]} stores to the stack and {found[1]} loads among {amount} products")
    return count, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--objdump", default="objdump")
    parser.add_argument("--spills", action="store_true")
    parser.add_argument("objects", nargs="+")
    options = parser.parse_args()
    complaints, seen, loops = [], set(), 0
    for path in options.objects:
        level = level_of(path)
        if not level:
            continue
        seen.add(level)
        complaints += [f"{path}: weak symbol {name}" for name in foreign_symbols(options.nm, path, level)]
        if options.spills:
            looked_at, wrong = spills(options.objdump, path, level)
            loops += looked_at
            complaints += wrong
    if seen != LEVELS:
        complaints.append(f"objects of {sorted(LEVELS - seen)} are missing")
    if options.spills and loops == 0:
        complaints.append("no tile loop found")
    print("\n".join(complaints) if complaints else f"instruction-set objects: ok, {loops} loops looked at")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
