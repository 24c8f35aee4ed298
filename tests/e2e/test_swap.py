"""Swap, the second tier and the prefix cache never change a token: 64 requests with shared prefixes, run in many ways."""
import concurrent.futures
import os
import signal
import subprocess

import pytest
import requests

from quire_server import MODEL, QUIRE, Server, free_port

COMMON = ("--model", MODEL, "--max-model-len", "256", "--max-num-seqs", "32")
POISON = {"QUIRE_POISON_KV": "1"}  # blocks are NaN until their tokens are written


def bodies() -> list[dict]:
    """Four prefixes of 144 tokens, 16 requests with each; every fourth greedy, every eighth with two choices."""
    made = []
    for k in range(64):
        prefix = [1000 + 7919 * (k % 4) + 31 * i % 9000 for i in range(144)]
        own = [300 + 17 * i + 101 * k for i in range(4 + k % 23)]
        body = {"prompt": prefix + own, "max_tokens": 12 + k % 9 * 4, "ignore_eos": True, "return_token_ids": True,
                "temperature": 0.8 if k % 4 else 0, "seed": 500 + k}
        if k % 8 == 5:
            body["n"] = 2
        made.append(body)
    return made


def ask(server: Server, body: dict) -> list[list[int]]:
    reply = requests.post(server.url + "/v1/completions", json=body, timeout=300)
    assert reply.status_code == 200, reply.text
    return [choice["token_ids"] for choice in sorted(reply.json()["choices"], key=lambda c: c["index"])]


def together(server: Server) -> list:
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(lambda body: ask(server, body), bodies()))
    server.wait_idle()
    assert server.metric("vllm:kv_cache_usage_perc") == 0
    assert server.metric("quire:swap_space_usage_perc") == 0
    return answers


@pytest.fixture(scope="module")
def alone() -> list:
    """Each request by itself, nothing shared, nothing moved."""
    with Server(*COMMON, "--no-enable-prefix-caching", "--swap-space", "0") as server:
        answers = [ask(server, body) for body in bodies()]
        assert server.metric("vllm:num_preemptions_total") == 0
        assert server.metric("vllm:prefix_cache_queries_total") == 0
    assert len({tuple(choice) for answer in answers for choice in answer}) > 40  # they say something of their own
    return answers


def test_cold_and_warm(alone):
    with Server(*COMMON) as server:
        assert together(server) == alone
        assert together(server) == alone
        assert server.metric("vllm:prefix_cache_hits_total") > 64 * 144
        assert server.metric("quire:preemptions_total") == 0


@pytest.mark.parametrize("more", [("--swap-space", "1"), ("--swap-dir", "TMP"), ("--swap-space", "0.012")])
def test_swapped_out_and_back(alone, tmp_path, more):
    """A pool of a few sequences; swapped to memory, to a file, and to a space that is soon full itself."""
    more = [str(tmp_path) if word == "TMP" else word for word in more]
    with Server(*COMMON, "--num-gpu-blocks-override", "24", "--preemption-mode", "swap", *more, env=POISON) as server:
        assert together(server) == alone
        assert server.metric("quire:preemptions_total", 'mode="swap"') > 0
        assert server.metric("quire:swap_blocks_out_total") > 0
        assert server.metric("quire:swap_blocks_in_total") > 0
        assert server.metric("quire:kv_tier_hits_total") > 0
        assert server.metric("vllm:prefix_cache_hits_total") >= server.metric("quire:kv_tier_hits_total")
        if more[1] == "0.012":
            assert server.metric("quire:kv_tier_evictions_total") > 0
        assert os.listdir(tmp_path) == []


def test_recomputed(alone):
    with Server(*COMMON, "--num-gpu-blocks-override", "24", "--preemption-mode", "recompute", "--swap-space", "0",
                env=POISON) as server:
        assert together(server) == alone
        assert server.metric("quire:preemptions_total", 'mode="recompute"') > 0
        assert server.metric("quire:swap_blocks_out_total") == 0
        assert server.metric("vllm:prefix_cache_hits_total") > 0


@pytest.mark.parametrize("budget", [64, 2048])
def test_budgets(alone, budget):
    with Server(*COMMON, "--max-num-batched-tokens", str(budget), "--num-gpu-blocks-override", "60") as server:
        assert together(server) == alone
        assert server.metric("quire:token_budget") == budget
        assert server.metric("quire:swap_blocks_out_total") > 0


@pytest.mark.parametrize("block", [32, 128])
def test_block_sizes(alone, block):
    with Server(*COMMON, "--block-size", str(block), "--num-gpu-blocks-override", str(768 // block), env=POISON) as server:
        assert together(server) == alone
        assert server.metric("vllm:prefix_cache_hits_total") > 0
        assert server.metric("quire:swap_blocks_in_total") > 0


def test_restarted(alone, tmp_path):
    kept = (*COMMON, "--kv-cache-dir", str(tmp_path / "kv"))
    with Server(*kept) as server:
        assert together(server) == alone
        assert server.metric("quire:kv_tier_hits_total") == 0
        second = subprocess.run([QUIRE, "serve", "--port", str(free_port()), *kept], capture_output=True, text=True, timeout=60)
        assert second.returncode == 1 and "in use" in second.stderr
    assert all(path.stat().st_mode & 0o77 == 0 for path in (tmp_path / "kv").iterdir())

    with Server(*kept) as server:
        assert together(server) == alone
        # Each prefix is 9 blocks, and none was computed again.
        assert server.metric("quire:kv_tier_hits_total") >= 4 * 144
        assert server.metric("vllm:prompt_tokens_cached_total") >= 64 * 144
        server.process.send_signal(signal.SIGKILL)  # leaves nothing that would be trusted
        server.process.wait(30)
    with Server(*kept) as server:
        assert ask(server, bodies()[0]) == alone[0]
        assert server.metric("quire:kv_tier_hits_total") == 0
    # Blocks of another size are not used.
    with Server(*kept, "--block-size", "32") as server:
        assert ask(server, bodies()[0]) == alone[0]
        assert server.metric("quire:kv_tier_hits_total") == 0
