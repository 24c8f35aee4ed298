"""1,000 streams, many of them cut off at random moments: nothing may be held afterwards."""
import asyncio
import json
import random
import time

import pytest
import requests

from quire_server import MODEL, Server

CLIENTS = 1000
MIB = 1 << 20


def resident_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def settled_bytes(pid: int) -> int:
    """Resident memory once it stands still: an idle server goes on committing its KV cache."""
    last, since, end = resident_bytes(pid), time.monotonic(), time.monotonic() + 120
    while time.monotonic() - since < 1:
        assert time.monotonic() < end, "an idle server's memory goes on changing"
        time.sleep(0.1)
        now = resident_bytes(pid)
        if abs(now - last) > MIB:
            last, since = now, time.monotonic()
    return last


def request_bytes(body: dict) -> bytes:
    text = json.dumps(body).encode()
    return (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(text)) + text


async def one(port: int, rng: random.Random, leaves: bool, start: float) -> str:
    """One client from connecting to the end of its answer, or to the moment it walks out."""
    await asyncio.sleep(start)
    body = {"prompt": "word " * rng.randrange(1, 24), "max_tokens": rng.randrange(1, 12), "temperature": 0,
            "ignore_eos": True, "stream": True, "n": rng.choice([1, 1, 1, 2])}
    patience = None
    if leaves:
        body["max_tokens"] = 200
        body["stream"] = rng.random() < 0.7
        patience = rng.choice([0.0, 0.05, 0.5, 2.0, 6.0])  # queued, in prefill, in decode
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request_bytes(body))
        await writer.drain()
        answer = await asyncio.wait_for(reader.read(), patience)
    except asyncio.TimeoutError:
        return "left"
    finally:
        if leaves and rng.random() < 0.5:
            writer.transport.abort()  # a reset, not a close
        writer.close()
    head, _, rest = answer.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    if status != 200:
        return str(status)
    return "done" if not body["stream"] or b"data: [DONE]\n\n" in rest else "cut off"


async def round_of(port: int, count: int, seed: int) -> dict:
    rng = random.Random(seed)
    jobs = [one(port, random.Random(rng.random()), i % 10 < 3, rng.random() * 3) for i in range(count)]
    outcomes: dict = {}
    for outcome in await asyncio.gather(*jobs):
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return outcomes


@pytest.fixture
def server():
    running = Server("--model", MODEL)
    yield running
    running.stop()


def test_1000_clients_of_whom_a_third_leave_hold_nothing(server):
    server.wait_idle()
    asyncio.run(round_of(server.port, CLIENTS // 2, seed=1))  # pools and caches fill
    server.wait_idle()
    before = settled_bytes(server.process.pid)

    outcomes = asyncio.run(round_of(server.port, CLIENTS, seed=2))
    assert outcomes.get("left", 0) >= 0.2 * CLIENTS, outcomes
    assert outcomes.get("done", 0) >= 0.7 * CLIENTS, outcomes
    assert set(outcomes) <= {"left", "done"}, outcomes  # nobody refused, no stream without its end

    server.wait_idle(10)
    assert server.metric("vllm:num_requests_running") == 0
    assert server.metric("vllm:num_requests_waiting") == 0
    assert server.metric("vllm:kv_cache_usage_perc") == 0
    grown = settled_bytes(server.process.pid) - before
    assert grown <= max(0.02 * before, 16 * MIB), f"{grown / MIB:.1f} MiB over {before / MIB:.1f}"
    reply = requests.post(server.url + "/v1/completions", timeout=60, json={
        "prompt": "The capital of France is", "max_tokens": 8, "temperature": 0})
    assert "Paris" in reply.json()["choices"][0]["text"]
