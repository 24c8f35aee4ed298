"""`quire profile`, `quire plan --verify` and /debug/memory, run as a user runs them; and a run that has no more
memory than its plan says."""
import json
import resource
import subprocess

import requests

from quire_server import MODEL, QUIRE, Server

MIB = 1 << 20
# A small KV cache, so that the plan is about weights, arena and scratch as much as about KV.
SMALL = ("--max-model-len", "1024", "--max-num-seqs", "16", "--max-num-batched-tokens", "512",
         "--kv-cache-memory-bytes", "64M", "--swap-space", "0", "--quiet")


def quire(*words, **options):
    return subprocess.run([QUIRE, *words], capture_output=True, text=True, timeout=300, **options)


def test_profile_prints_memory_and_time_by_operation():
    done = quire("profile", MODEL, "--prompt", "The capital of France is", "--max-tokens", "8", *SMALL)
    assert done.returncode == 0, done.stderr
    for word in ("before", "after", "increase", "peak", "current", "allocated", "freed", "weights", "kv cache", "arena",
                 "worker scratch", "tokenizer", "prefill: 1 step, 5 tokens", "decode: 7 steps, 7 tokens", "attention",
                 "matmul", "GB/s", "GOP/s", "share"):
        assert word in done.stdout, f"{word} in {done.stdout}"


def test_profile_by_line_as_json_and_trace(tmp_path):
    trace = tmp_path / "trace.json"
    done = quire("profile", MODEL, "--random-input-len", "40", "--max-tokens", "6", "--lines", "--save-result", "-",
                 "--trace", str(trace), *SMALL)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["prompt_tokens"] == 40
    loading, generating = result["memory"]
    weights = loading["ledger"]["tags"]["weights"]
    assert 80 * MIB < weights["current"] < 150 * MIB
    assert loading["increase"] > weights["current"] * 0.95
    assert loading["peak_rss"] >= loading["after"]["rss"] and generating["peak_rss"] >= generating["after"]["rss"]
    for name, tokens in (("prefill", 40), ("decode", 5)):
        part = result[name]
        assert part["tokens"] == tokens
        times = sum(line["ms"] for line in part["operations"])
        assert 0 < times <= part["forward_ms"] * 1.0001 and part["forward_ms"] <= part["step_ms"]
        names = [line["name"] for line in part["operations"]]
        assert len(names) > 300 and any("layers.29" in each for each in names)
        assert len(set(names)) > 200
    check_trace(json.loads(trace.read_text())["traceEvents"], steps=6)


def check_trace(events, steps):
    """Every slice has a name and lies inside the one that is open on its thread, or behind it."""
    slices = {}
    for event in events:
        assert event["name"] and event["ph"] in "MXiC"
        if event["ph"] == "X":
            assert event["ts"] >= 0 and event["dur"] >= 0
            slices.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"], event["name"]))
    assert 0 in slices and 1 in slices
    for of_thread in slices.values():
        opened = []
        for begin, end, name in sorted(of_thread, key=lambda s: (s[0], -s[1])):
            while opened and opened[-1] <= begin + 0.0015:
                opened.pop()
            assert not opened or end <= opened[-1] + 0.0015, name
            opened.append(end)
    names = [name for _, _, name in slices[0]]
    assert sum(name.endswith(" step") for name in names) == steps
    assert names.count("forward") == names.count("sample") == steps
    assert any(event["name"] == "start" for event in events)


def test_profile_refuses_nonsense():
    assert quire("profile", MODEL, "--max-tokens", "0", *SMALL).returncode == 1


def test_debug_memory_is_there_only_when_asked_for_and_with_the_key():
    server = Server("--model", MODEL, "--api-key", "secret", "--enable-debug-endpoints", *SMALL)
    try:
        url = server.url + "/debug/memory"
        assert requests.get(url, timeout=10).status_code == 401
        answer = requests.get(url, timeout=10, headers={"Authorization": "Bearer secret"})
        assert answer.status_code == 200
        body = answer.json()
        tags = body["ledger"]["tags"]
        for tag in ("weights", "kv cache", "arena", "worker scratch", "tokenizer", "other"):
            assert tags[tag]["current"] == body["plan"][tag] > 0, tag
        assert tags["http"]["current"] > 0
        assert sum(tag["current"] for tag in tags.values()) == body["ledger"]["total"]["current"]
        assert body["process"]["rss"] > tags["weights"]["current"]
        assert body["process"]["peak_rss"] >= body["process"]["rss"]
    finally:
        server.stop()


def test_serve_refuses_what_does_not_fit_and_says_what_does():
    done = quire("serve", MODEL, "--port", "0", "--kv-cache-memory-bytes", "100T")
    assert done.returncode == 1
    for word in ("--kv-cache-memory-bytes", "100 TiB", "available", "at most", "bytes fit"):
        assert word in done.stderr, done.stderr
    done = quire("serve", MODEL, "--port", "0", "--gpu-memory-utilization", "0.0001")
    assert done.returncode == 1
    for word in ("available", "raise --gpu-memory-utilization to", "--max-num-batched-tokens", "--max-num-seqs"):
        assert word in done.stderr, done.stderr


def test_plan_verify_finds_what_was_counted():
    done = quire("plan", MODEL, "--verify", *SMALL)
    assert done.returncode == 0, done.stdout + done.stderr
    for word in ("predicted", "measured", "exact", "within", "resident, peak"):
        assert word in done.stdout
    assert "DIFFERS" not in done.stdout and "NOT WITHIN" not in done.stdout


def total_of_plan():
    """Bytes of the plan, and what the process takes without a model."""
    server = Server("--model", MODEL, "--enable-debug-endpoints", *SMALL)
    try:
        body = requests.get(server.url + "/debug/memory", timeout=10).json()
        return body["plan"]["total"]
    finally:
        server.stop()


PROMPTS = ["one two three " * 120] * 16  # fill batch and KV cache


def run_within(limit_bytes):
    """Data (heap, buffers, stacks: what is written to, reserved or touched) beyond the limit is refused by the kernel.
    RLIMIT_AS would count the mapped model file and unused address space too."""
    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))
        resource.setrlimit(resource.RLIMIT_STACK, (MIB, MIB))  # of each thread: reserved, hardly touched
    return quire("run", *PROMPTS, "--max-tokens", "32", "--temperature", "1", *SMALL, preexec_fn=limit)


def test_a_run_needs_no_more_than_its_plan():
    plan = total_of_plan()
    limit = int(plan * 1.02) + 32 * MIB
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    done = run_within(limit)
    assert done.returncode == 0, done.stderr
    assert "16 prompts" in done.stderr
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    if peak > before * 1024:  # the largest child so far was this one
        assert peak <= limit, f"{peak} resident, {limit} planned"
    # The limit is one that bites: a third less, and the run ends with a clear line.
    short = run_within(plan * 2 // 3)
    assert short.returncode == 1 and "quire:" in short.stderr, short.stderr


