#!/usr/bin/env python3
"""Compares Quire's server with its peers' over HTTP on the same file and machine, server by server in turns: closed-loop clients
with streamed answers, or, with --memory, what each holds of the machine's memory while it serves one stream.

Run by `./dev bench --servers [OPTIONS]`, which installs the peers; QUIRE, PEERS, VLLM and QUIRE_DEV_CACHE come from there.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import models
import report
from peers import EngineError
from peers.llama_cpp import LlamaCpp
from served import Room, ServerProcess, resident
from served.llama_server import LlamaServer
from served.quire import QuireServer, printed_plan
from served.vllm import VllmServer

MIB = 1 << 20
# Our lines, and what `quire bench serve` calls them.
FIGURES = {"output tok/s": "output_throughput", "TTFT p50 ms": "p50_ttft_ms", "TTFT p95 ms": "p95_ttft_ms",
           "ITL p50 ms": "p50_itl_ms", "ITL p95 ms": "p95_itl_ms", "E2E p95 ms": "p95_e2el_ms"}
LOAD_LINES = [*FIGURES, "failed requests", "start s", "RSS idle MiB", "RSS after MiB", "PSS after MiB", "peak RSS MiB"]
MEMORY_LINES = ["start s", "RSS healthy MiB", "RSS settled MiB", "RSS after MiB", "PSS after MiB", "anonymous MiB",
                "of files MiB", "peak RSS MiB"]
HIGHER = "output tok/s"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", action="store_true", help="resident memory with one stream, instead of the load")
    parser.add_argument("--vllm", action="store_true", help="vLLM too, in bf16 (`dev` installs it: 6 GB)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each server; medians are shown (3)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--models", default="default,1b-q4_0",
                        help="of " + ", ".join(models.NAMES) + ", or GGUF files, with commas (default,1b-q4_0)")
    parser.add_argument("--servers", default="quire,llama-server", help="of quire, llama-server, vllm, in this order")
    parser.add_argument("--clients", type=int, default=32, help="streams at once; 1 with --memory (32)")
    parser.add_argument("--requests", type=int, default=3, help="of each client, one after the other (3)")
    parser.add_argument("--input-len", type=int, default=128, help="tokens of a prompt (128)")
    parser.add_argument("--output-len", type=int, default=128, help="tokens of an answer (128)")
    parser.add_argument("--context", type=int, default=0,
                        help="room of a stream in every server's KV cache, tokens (twice the lengths; 4096 with --memory)")
    for name in ("quire", "llama", "vllm"):
        parser.add_argument(f"--{name}-options", default="", help="more options of this server, with blanks")
    parser.add_argument("--json", default="", help="also write all figures to this file")
    options = parser.parse_args()
    if options.memory:
        options.clients, options.requests = 1, 1
    options.context = options.context or (4096 if options.memory else 2 * (options.input_len + options.output_len))
    if options.vllm:
        options.servers += ",vllm"
    return options


def start_engines(options: argparse.Namespace, cache: pathlib.Path, python: pathlib.Path) -> list:
    makers = {"quire": lambda: QuireServer(pathlib.Path(os.environ["QUIRE"]), tuple(options.quire_options.split())),
              "llama-server": lambda: LlamaServer(python, tuple(options.llama_options.split())),
              "vllm": lambda: VllmServer(pathlib.Path(os.environ["VLLM"]), cache / "models",
                                         tuple(options.vllm_options.split()))}
    engines = []
    for name in options.servers.split(","):
        if name not in makers:
            sys.exit(f"servers.py: no server is called {name}; there are " + ", ".join(makers))
        try:
            engines.append(makers[name]())
        except EngineError as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
    return engines


def drive(server: ServerProcess, options: argparse.Namespace, clients: int, requests: int, output_len: int, seed: int) -> dict:
    """What `quire bench serve` says of `requests` in all by `clients` at once. Failed requests are counted, not raised."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        command = [os.environ["QUIRE"], "bench", "serve", "--base-url", server.url(), "--num-prompts", requests,
                   "--max-concurrency", clients, "--random-input-len", options.input_len, "--random-output-len", output_len,
                   "--ignore-eos", "--seed", seed, "--quiet", "--save-result", result]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if not result.exists():
            raise EngineError(f"the load ended with {done.returncode}: {done.stderr.strip()[-300:]}; {server.last_words()}")
        return json.loads(result.read_text())


def check_lengths(figures: dict, options: argparse.Namespace) -> None:
    """Rates of answers that ended early would compare nothing."""
    expected = figures["completed"] * options.output_len
    if figures["completed"] == 0 or figures["total_output_tokens"] != expected:
        raise EngineError(f"{figures['total_output_tokens']} tokens came where {expected} were asked for; "
                          f"errors: {figures['errors']}")


def load_turn(engine, model: pathlib.Path, options: argparse.Namespace, log: pathlib.Path, seed: int) -> dict:
    room = Room(options.threads, options.clients, options.context)
    with engine.start(model, room, log) as server:
        idle = resident.settled(server.process.pid)
        drive(server, options, options.clients, options.clients, min(8, options.output_len), 1000 + seed)  # warms up
        figures = drive(server, options, options.clients, options.clients * options.requests, options.output_len, seed)
        check_lengths(figures, options)
        after = server.resident()
        return ({line: figures[key] for line, key in FIGURES.items()}
                | {"failed requests": figures["failed"], "start s": server.start_s, "RSS idle MiB": idle["rss"] / MIB,
                   "RSS after MiB": after["rss"] / MIB, "PSS after MiB": after["pss"] / MIB,
                   "peak RSS MiB": after["peak_rss"] / MIB})


def memory_turn(engine, model: pathlib.Path, options: argparse.Namespace, log: pathlib.Path, seed: int) -> dict:
    room = Room(options.threads, 1, options.context)
    with engine.start(model, room, log) as server:
        healthy = server.resident()
        settled = resident.settled(server.process.pid)
        check_lengths(drive(server, options, 1, 1, options.output_len, seed), options)
        after = server.resident()
        turn = {"start s": server.start_s, "RSS healthy MiB": healthy["rss"] / MIB, "RSS settled MiB": settled["rss"] / MIB,
                "RSS after MiB": after["rss"] / MIB, "PSS after MiB": after["pss"] / MIB,
                "anonymous MiB": after["anonymous"] / MIB, "of files MiB": after["file"] / MIB,
                "peak RSS MiB": after["peak_rss"] / MIB}
        if isinstance(engine, QuireServer):
            turn["plan"] = {name: size / MIB for name, size in printed_plan(server).items()}
        return turn


def against_plan(turns: list[dict]) -> str:
    """Resident memory beside the sum that the server printed at start, with the bound of 1.05 times the sum and 32 MiB."""
    plan = turns[-1]["plan"]
    counted = sum(plan.values())
    allowed = 1.05 * counted + 32
    lines = ["Quire, MiB: " + " + ".join(f"{name} {size:,.1f}" for name, size in plan.items()) + f" = {counted:,.1f}",
             f"allowed: 1.05 x {counted:,.1f} + 32 = {allowed:,.1f}"]
    for line in ("RSS healthy MiB", "RSS settled MiB", "RSS after MiB", "peak RSS MiB"):
        held = report.median_of(turns, line)
        lines.append(f"{line[:-4]:<12} {held:>10,.1f}   {held / counted:.3f} x the sum   "
                     + ("within" if held <= allowed else f"{held - allowed:,.1f} MORE than allowed"))
    return "\n".join(lines) + "\n"


def take_turns(engines: list, name: str, model: pathlib.Path, options: argparse.Namespace, logs: pathlib.Path) -> dict:
    """server -> figures of every round; a server that fails once is left out from then on."""
    turns = {engine.name: [] for engine in engines}
    able, turn = list(engines), memory_turn if options.memory else load_turn
    for index in range(options.rounds):
        for engine in list(able):
            print(f"{name}: round {index + 1} of {options.rounds}, {engine.name}", file=sys.stderr)
            log = logs / (engine.name.split()[0] + ".log")
            try:
                turns[engine.name].append(turn(engine, model, options, log, index))
            except EngineError as error:
                print(f"{name}: {engine.name}: left out: {error}", file=sys.stderr)
                able.remove(engine)
    return {name: figures for name, figures in turns.items() if figures}


def show(name: str, path: pathlib.Path, turns: dict, options: argparse.Namespace) -> dict:
    """Prints the tables of one model; returns its figures for --json."""
    lines = MEMORY_LINES if options.memory else LOAD_LINES
    figures = report.summary(turns, lines, frozenset(lines) - {HIGHER})
    what = (f"one stream of {options.input_len}/{options.output_len} tokens" if options.memory else
            f"{options.clients} clients x {options.requests} requests of {options.input_len}/{options.output_len} tokens")
    print(f"\n{path.name}, {options.threads} threads, {what}, room for {options.clients * options.context} tokens, "
          f"medians of {options.rounds} rounds\n")
    print(report.markdown(name, figures, list(turns)), flush=True)
    if options.memory and report.OURS in turns:
        print(against_plan(turns[report.OURS]), flush=True)
    return {"lines": figures, "turns": turns}


def main() -> int:
    options = parse()
    cache = pathlib.Path(os.environ["QUIRE_DEV_CACHE"])
    python = pathlib.Path(os.environ["PEERS"]) / "bin/python"
    logs = cache / "server-logs"
    logs.mkdir(parents=True, exist_ok=True)
    engines = start_engines(options, cache, python)
    llama = LlamaCpp(python) if any(isinstance(engine, LlamaServer) for engine in engines) else None
    results, complete = {}, True
    for name, path in models.files(options.models, pathlib.Path(os.environ["QUIRE"]), cache / "models", python, llama,
                                   options.threads).items():
        turns = take_turns(engines, name, path, options, logs)
        complete = complete and len(turns) == len(engines)
        results[name] = show(name, path, turns, options)
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps({"options": vars(options), "models": results}, indent=1) + "\n")
    return 0 if complete and results else 1


if __name__ == "__main__":
    sys.exit(main())
