#!/usr/bin/env python3
"""What the prefix cache costs the engine's thread when nothing hits, in instructions, which a busy machine does not change:
the same requests under callgrind with the cache on and off. Needs valgrind. Takes minutes.

Run as `QUIRE=build/release/quire python3 bench/cache_cost.py [--model MODEL] [--prompts 6] [--words 40] [--tokens 24]`.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
QUIRE = os.environ.get("QUIRE", str(ROOT / "build/release/quire"))
WORDS = "river stone window garden letter music winter bridge silver engine paper island candle forest mirror".split()
# Inclusive counts of these make up a step; the scheduler's own are what the cache adds to.
STEP = "quire::engine::Engine::Impl::run"
SCHEDULER = ("quire::sched::Scheduler::add", "quire::sched::Scheduler::plan", "quire::sched::Scheduler::commit")


def inclusive_counts(profile: pathlib.Path) -> dict[str, int]:
    """Instructions of each function with all that it calls, by its name without parameters."""
    text = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", str(profile)], check=True,
                          capture_output=True, text=True).stdout
    counts: dict[str, int] = {}
    for line in text.splitlines():
        number, _, rest = line.strip().partition(" ")
        if not number.replace(",", "").isdigit() or ":" not in rest:
            continue
        function = rest.split(")", 1)[1] if rest.startswith("(") else rest
        name = function.split(":", 1)[1].split("(", 1)[0].split("'", 1)[0]
        counts[name] = max(counts.get(name, 0), int(number.replace(",", "")))
    return counts


def profile(arguments: argparse.Namespace, folder: pathlib.Path, cached: bool) -> tuple[int, int]:
    """Instructions of the steps, and of the scheduler in them."""
    out = folder / f"callgrind.{cached}"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", QUIRE, "run", "--quiet", "--threads", "1",
               "--temperature", "0", "--ignore-eos", "--max-tokens", str(arguments.tokens), "--file", str(folder / "prompts")]
    command += ["--model", arguments.model] if arguments.model else []
    command += [] if cached else ["--no-enable-prefix-caching"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    counts = inclusive_counts(out)
    missing = [name for name in (STEP, *SCHEDULER) if name not in counts]
    if missing:
        sys.exit(f"the profile has no {', '.join(missing)}")
    return counts[STEP], sum(counts[name] for name in SCHEDULER)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="", help="as quire run takes it; the default model when not given")
    parser.add_argument("--prompts", type=int, default=6)
    parser.add_argument("--words", type=int, default=40)
    parser.add_argument("--tokens", type=int, default=24)
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed (Debian: valgrind)")
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        lines = [" ".join([str(i), *rng.choices(WORDS, k=arguments.words)]) for i in range(arguments.prompts)]
        (folder / "prompts").write_text("\n".join(lines) + "\n")
        steps_on, scheduler_on = profile(arguments, folder, True)
        steps_off, scheduler_off = profile(arguments, folder, False)
    share = (scheduler_on - scheduler_off) / steps_off
    print(f"steps, cache off       {steps_off:16,} instructions")
    print(f"steps, cache on        {steps_on:16,}")
    print(f"scheduler, cache off   {scheduler_off:16,}")
    print(f"scheduler, cache on    {scheduler_on:16,}")
    print(f"the cache              {100 * share:15.4f} % of the engine thread's instructions (less than 1 % is asked for)")
    print(json.dumps({"steps_off": steps_off, "steps_on": steps_on, "scheduler_off": scheduler_off,
                      "scheduler_on": scheduler_on, "share": share}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
