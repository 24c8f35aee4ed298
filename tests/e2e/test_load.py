"""Many clients at once: streams, disconnects, overload, shutting down, idling."""
import concurrent.futures
import os
import random
import signal
import socket
import subprocess
import time

import openai
import requests

from quire_server import MODEL, QUIRE, Server


def test_32_streams_at_once(server):
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="none")

    def one(i):
        stream = client.chat.completions.create(model=MODEL, stream=True, max_tokens=24, temperature=0, messages=[
            {"role": "user", "content": f"{i}番目の質問です。{i}について一言お願いします。"}])
        return "".join(c.choices[0].delta.content or "" for c in stream)

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        together = list(pool.map(one, range(32)))
    alone = [one(i) for i in range(0, 32, 8)]
    assert together[::8] == alone  # a request's tokens do not depend on its neighbours


def test_100_random_disconnects_free_everything(server):
    rng = random.Random(5)

    def one(i):
        body = {"prompt": "word " * rng.randrange(1, 600), "max_tokens": 200, "ignore_eos": True, "stream": i % 3 != 0}
        try:
            with requests.post(server.url + "/v1/completions", json=body, stream=True,
                               timeout=(5, rng.choice([0.01, 0.1, 0.5]))) as reply:
                for count, _ in enumerate(reply.iter_lines()):
                    if count >= rng.randrange(1, 40):
                        break
        except requests.RequestException:
            pass

    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        list(pool.map(one, range(100)))
    server.wait_idle()
    assert server.metric("vllm:kv_cache_usage_perc") == 0
    assert server.metric("vllm:request_success_total", 'finished_reason="abort"') > 0
    assert requests.get(server.url + "/health", timeout=5).status_code == 200


def cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_an_idle_server_uses_no_cpu():
    # A small cache: a server commits its cache's memory while it idles, and that takes processor time once.
    small = Server("--model", MODEL, "--max-model-len", "1024", "--kv-cache-memory-bytes", "64M")
    try:
        requests.post(small.url + "/v1/completions", timeout=120,
                      json={"prompt": "x", "max_tokens": 40, "ignore_eos": True}).raise_for_status()
        small.wait_idle()
        time.sleep(2)
        before = cpu_seconds(small.process.pid)
        time.sleep(2)
        assert cpu_seconds(small.process.pid) - before <= 0.02 * 2  # 2 %: clock ticks are coarse
    finally:
        small.stop()


def test_a_full_queue_is_429():
    small = Server("--model", MODEL, "--max-num-seqs", "1", "--max-waiting-requests", "2", "--max-model-len", "1024")
    try:
        def one(_):
            return requests.post(small.url + "/v1/completions", timeout=120,
                                 json={"prompt": "x", "max_tokens": 300, "ignore_eos": True})
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            replies = list(pool.map(one, range(12)))
        refused = [r for r in replies if r.status_code == 429]
        assert refused and all("Retry-After" in r.headers for r in refused)
        assert all(r.status_code in (200, 429) for r in replies)
    finally:
        small.stop()


def test_sigterm_lets_streams_finish_and_refuses_new_ones():
    draining = Server("--model", MODEL, "--max-model-len", "2048")
    client = openai.OpenAI(base_url=draining.url + "/v1", api_key="none")
    stream = client.completions.create(model=MODEL, prompt="Count:", max_tokens=400, stream=True,
                                       extra_body={"ignore_eos": True})
    first = next(iter(stream))
    draining.process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    try:
        assert requests.post(draining.url + "/v1/completions", json={"prompt": "x"}, timeout=5).status_code == 503
    except requests.ConnectionError:
        pass  # it may be over already
    chunks = [first] + list(stream)
    assert chunks[-1].choices[0].finish_reason == "length"
    assert draining.process.wait(30) == 0


def test_a_second_sigterm_leaves_at_once():
    busy = Server("--model", MODEL, "--max-model-len", "4096")
    reply = requests.post(busy.url + "/v1/completions", stream=True, timeout=60,
                          json={"prompt": "x", "max_tokens": 4000, "ignore_eos": True, "stream": True})
    lines = reply.iter_lines()  # held, or the connection would be closed with it
    next(lines)
    busy.process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert busy.process.poll() is None
    start = time.monotonic()
    busy.process.send_signal(signal.SIGTERM)
    busy.process.wait(5)
    assert time.monotonic() - start < 2


def test_keys_guard_every_route_that_is_not_open():
    locked = Server("--model", MODEL, "--api-key", "secret", "--max-model-len", "1024", "--served-model-name", "m1", "m2")
    try:
        assert requests.get(locked.url + "/health", timeout=5).status_code == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
            assert requests.get(locked.url + "/v1/models", headers=headers, timeout=5).status_code == 401
        good = requests.get(locked.url + "/v1/models", headers={"Authorization": "Bearer secret"}, timeout=5)
        assert [m["id"] for m in good.json()["data"]] == ["m1", "m2"]
    finally:
        locked.stop()


def test_a_taken_port_and_a_bad_model_are_one_line_and_exit_code_1(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run([QUIRE, "serve", "--host", "127.0.0.1", "--port", port], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and port in done.stderr and len(done.stderr.strip().splitlines()) == 1
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF" + bytes(60))
    done = subprocess.run([QUIRE, "info", str(bad)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "bad.gguf" in done.stderr and len(done.stderr.strip().splitlines()) == 1
