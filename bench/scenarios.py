#!/usr/bin/env python3
"""What users feel, measured over HTTP on one server at a time: a shared system prompt with the prefix cache on against off,
and how long running streams wait while a long prompt arrives.

Run by `./dev bench --scenarios [--rounds N] [--model MODEL] [--json FILE] [-- SERVER OPTIONS]`. Prompts are token ids, so that
they are as long as they say. Standard library only.
"""
import argparse
import http.client
import json
import os
import pathlib
import random
import socket
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
QUIRE = os.environ.get("QUIRE", str(ROOT / "build/release/quire"))
IDS = 20000  # prompts are drawn from ids below it


class Server:
    """`quire serve` on a free port, stopped at the end of the `with` block."""

    def __init__(self, model: str, options: list[str]):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [QUIRE, "serve", "--quiet", "--host", "127.0.0.1", "--port", str(self.port), *options]
        if model:
            command += ["--model", model]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def __enter__(self):
        while True:
            if self.process.poll() is not None:
                sys.exit("the server did not start; try its options with `quire serve`")
            try:
                if self.get("/health")[0] == 200:
                    return self
            except OSError:
                pass
            time.sleep(0.1)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)

    def get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, reply.read().decode()

    def metric(self, name: str) -> float:
        lines = self.get("/metrics")[1].splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name + "{"))


class Stream(threading.Thread):
    """One streamed completion; `times` holds when it was sent and when each event arrived."""

    def __init__(self, server: Server, prompt: list[int], max_tokens: int):
        super().__init__()
        self.server, self.times, self.first = server, [], threading.Event()
        self.body = {"prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": True, "stream": True,
                     "return_token_ids": True}

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=600)
        self.times.append(time.perf_counter())
        connection.request("POST", "/v1/completions", json.dumps(self.body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        if reply.status != 200:
            raise RuntimeError(reply.read().decode())
        for line in reply:
            if line.startswith(b"data: {") and b'"token_ids"' in line:
                self.times.append(time.perf_counter())
                self.first.set()

    def ttft(self) -> float:
        return self.times[1] - self.times[0]


def ids(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(200, IDS) for _ in range(count)]


def shared_prompt(model: str, options: list[str], cached: bool, seed: int) -> dict:
    """16 users at once, a system prompt of 1,000 tokens that was seen before, 30 tokens of their own."""
    rng = random.Random(seed)
    system = ids(rng, 1000)
    with Server(model, options + ([] if cached else ["--no-enable-prefix-caching"])) as server:
        for prompt in (ids(rng, 64), system + ids(rng, 30)):  # the machine warms up; one user came before
            first = Stream(server, prompt, 4)
            first.start()
            first.join()
        streams = [Stream(server, system + ids(rng, 30), 8) for _ in range(16)]
        for stream in streams:
            stream.start()
        for stream in streams:
            stream.join()
        times = [stream.ttft() for stream in streams]
        return {"mean_ttft_ms": 1e3 * statistics.mean(times), "largest_ttft_ms": 1e3 * max(times),
                "hit_tokens": server.metric("vllm:prefix_cache_hits_total")}


def long_prompt_beside_streams(model: str, options: list[str], seed: int) -> dict:
    """Four streams in the middle of their answers when a prompt of 2,000 tokens arrives."""
    rng = random.Random(seed)
    with Server(model, options) as server:
        streams = [Stream(server, ids(rng, 50), 400) for _ in range(4)]
        for stream in streams:
            stream.start()
        for stream in streams:
            stream.first.wait()
        time.sleep(0.3)
        arrival = Stream(server, ids(rng, 2000), 4)
        arrival.start()
        arrival.join()
        for stream in streams:
            stream.join()
        gaps = [b - a for stream in streams for a, b in zip(stream.times[1:], stream.times[2:])]
        # Those that the prompt had a part in.
        begin, end = arrival.times[0], arrival.times[1]
        beside = [b - a for stream in streams for a, b in zip(stream.times[1:], stream.times[2:]) if b > begin and a < end]
        if not beside:
            sys.exit("the streams ended before the prompt came; this machine needs longer ones")
        median = 1e3 * statistics.median(gaps)
        return {"median_itl_ms": median, "largest_gap_ms": 1e3 * max(beside), "allowed_gap_ms": max(3 * median, 150.0),
                "prompt_ttft_ms": 1e3 * arrival.ttft()}


def middle(rounds: list[dict]) -> dict:
    return {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}


def print_shared(figures: dict) -> None:
    print("16 users, shared system prompt of 1,000 tokens")
    for name, one in (("cache on", figures["cache_on"]), ("cache off", figures["cache_off"])):
        print(f"  {name:<10} mean TTFT {one['mean_ttft_ms']:8.1f} ms   largest {one['largest_ttft_ms']:8.1f} ms   "
              f"hits {one['hit_tokens']:8.0f} tokens")
    print(f"  on / off   {figures['ttft_ratio']:8.3f}   (at most 0.15 is asked for)")


def print_beside(figures: dict) -> None:
    print("4 streams, a prompt of 2,000 tokens arrives")
    print(f"  median ITL {figures['median_itl_ms']:8.1f} ms   largest gap {figures['largest_gap_ms']:8.1f} ms   "
          f"allowed {figures['allowed_gap_ms']:8.1f} ms   the prompt's TTFT {figures['prompt_ttft_ms']:8.1f} ms")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", default="", help="as quire serve takes it; the default model when not given")
    parser.add_argument("--only", choices=["shared", "beside"], help="one of the two: the shared prompt, or the streams")
    parser.add_argument("--json", default="", help="also write the figures to this file")
    parser.add_argument("server_options", nargs="*", help="behind --: options for quire serve")
    arguments = parser.parse_args()
    given = (arguments.model, arguments.server_options)
    on, off, beside = [], [], []
    for turn in range(arguments.rounds):
        print(f"round {turn + 1} of {arguments.rounds}", file=sys.stderr)
        if arguments.only != "beside":
            on.append(shared_prompt(*given, True, turn))
            off.append(shared_prompt(*given, False, turn))
        if arguments.only != "shared":
            beside.append(long_prompt_beside_streams(*given, 100 + turn))
    figures: dict = {"rounds": arguments.rounds}
    print(f"medians of {arguments.rounds} rounds")
    if on:
        ratio = statistics.median(a["mean_ttft_ms"] / b["mean_ttft_ms"] for a, b in zip(on, off))
        figures["shared_prompt"] = {"cache_on": middle(on), "cache_off": middle(off), "ttft_ratio": ratio}
        print_shared(figures["shared_prompt"])
    if beside:
        figures["long_prompt_beside_streams"] = middle(beside)
        print_beside(figures["long_prompt_beside_streams"])
    print(json.dumps(figures))
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
