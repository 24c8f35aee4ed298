#!/usr/bin/env python3
"""Compares Quire with its peers on the same files and machine, engine by engine in turns, and prints ratios.

Run by `./dev bench --peer [OPTIONS]`, which installs the peers; QUIRE, PEERS, VLLM and QUIRE_DEV_CACHE come from there.
"""
import argparse
import json
import os
import pathlib
import sys

import models
import report
from peers import EngineError, Settings
from peers.llama_cpp import LlamaCpp
from peers.openvino import OpenVino
from peers.quire import Quire
from peers.vllm import Vllm

DEFAULT_PEERS = {"llama.cpp": LlamaCpp, "openvino": OpenVino}
PEERS = DEFAULT_PEERS | {"vllm": Vllm}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each engine; medians are shown (5)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--models", default=",".join(models.NAMES),
                        help="of " + ", ".join(models.NAMES) + ", or GGUF files, with commas (all)")
    parser.add_argument("--peers", default=",".join(DEFAULT_PEERS),
                        help="of " + ", ".join(PEERS) + ", with commas (" + ",".join(DEFAULT_PEERS) + ")")
    parser.add_argument("--prefill", type=int, default=512, help="tokens of the prompt (512)")
    parser.add_argument("--streams", default="1,8,16,32", help="streams that decode together (1,8,16,32)")
    parser.add_argument("--context", type=int, default=16, help="tokens of a stream's prompt before it decodes (16)")
    parser.add_argument("--decode", type=int, default=64, help="tokens of each stream that are timed (64)")
    parser.add_argument("--quire-options", default="", help="more options of `quire bench model`, with blanks")
    parser.add_argument("--json", default="", help="also write all figures to this file")
    return parser.parse_args()


def start_peers(names: str, python: pathlib.Path) -> list:
    peers = []
    for name in filter(None, names.split(",")):
        try:
            peers.append(PEERS[name](python))
        except EngineError as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
    return peers


def take_turns(engines: list, model: pathlib.Path, settings: Settings, rounds: int, name: str) -> dict:
    """engine -> a dictionary of rates for every round; an engine that fails once is left out from then on."""
    turns = {engine.name: [] for engine in engines}
    for index in range(rounds):
        for engine in list(engines):
            print(f"{name}: round {index + 1} of {rounds}, {engine.name}", file=sys.stderr)
            try:
                turns[engine.name].append(engine.run(model, settings))
            except EngineError as error:
                print(f"{engine.name}: left out: {error}", file=sys.stderr)
                engines.remove(engine)
    return {name: figures for name, figures in turns.items() if figures}


def main() -> int:
    options = parse()
    unknown = [name for name in filter(None, options.peers.split(",")) if name not in PEERS]
    if unknown:
        print(f"compare.py: no peer is called {unknown[0]}; there are " + ", ".join(PEERS), file=sys.stderr)
        return 2
    settings = Settings(options.threads, options.prefill, tuple(int(word) for word in options.streams.split(",")),
                        options.context, options.decode)
    python = pathlib.Path(os.environ["PEERS"]) / "bin/python"
    binary = pathlib.Path(os.environ["QUIRE"])
    peers = start_peers(options.peers, python)
    quire = Quire(binary, tuple(options.quire_options.split()))
    results = {}
    llama = next((peer for peer in peers if isinstance(peer, LlamaCpp)), None)
    folder = pathlib.Path(os.environ["QUIRE_DEV_CACHE"]) / "models"
    for name, path in models.files(options.models, binary, folder, python, llama, options.threads).items():
        able = [quire]
        for peer in peers:
            why_not = peer.check(path)
            if why_not:
                print(f"{name}: without {peer.name}: {why_not}", file=sys.stderr)
            else:
                able.append(peer)
        turns = take_turns(able, path, settings, options.rounds, name)
        if report.OURS not in turns:
            return 1
        results[name] = report.summary(turns, settings.lines())
        print(f"\n{path.name}, {options.threads} threads, tokens a second, medians of {options.rounds} rounds\n")
        print(report.markdown(name, results[name], list(turns)), flush=True)
        if options.json:
            pathlib.Path(options.json).write_text(
                json.dumps({"threads": options.threads, "rounds": options.rounds, "context": options.context,
                            "models": results}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
