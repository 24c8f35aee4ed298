"""Prompts that begin alike: computed once, and answered as if each had been alone."""
import concurrent.futures

import pytest
import requests

from quire_server import MODEL, Server

COMMON = ("--model", MODEL, "--max-model-len", "2048")


@pytest.fixture(scope="module")
def cached():
    running = Server(*COMMON)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def uncached():
    running = Server(*COMMON, "--no-enable-prefix-caching", "--scheduling-policy", "priority")
    yield running
    running.stop()


def complete(server, **body):
    reply = requests.post(server.url + "/v1/completions", json=body, timeout=300)
    assert reply.status_code == 200, reply.text
    return reply.json()


def answer(reply):
    return reply["choices"][0]["text"], reply["choices"][0]["logprobs"]


def bodies():
    """16 prompts of 1,024 tokens, the first 896 of which they share, half greedy and half sampled."""
    shared = [1000 + 7 * i % 9000 for i in range(896)]
    return [{"prompt": shared + [2000 + 11 * i + 400 * k for i in range(128)], "max_tokens": 8, "ignore_eos": True,
             "temperature": k % 2 * 0.8, "seed": k, "logprobs": 1} for k in range(16)]


def test_sixteen_at_once_compute_what_they_share_once(cached, uncached):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        cold = list(pool.map(lambda body: complete(cached, **body), bodies()))
        computed = cached.metric("vllm:prompt_tokens_total") - cached.metric("vllm:prompt_tokens_cached_total")
        assert computed <= 3200  # of 16,384
        warm = list(pool.map(lambda body: complete(cached, **body), bodies()[:4]))
        alone = list(pool.map(lambda body: complete(uncached, **body), bodies()[:4]))
    assert cached.metric("vllm:prefix_cache_queries_total") == 20 * 1024
    assert sum(r["usage"]["prompt_tokens_details"]["cached_tokens"] for r in cold) >= 16 * 1024 - 3200
    assert uncached.metric("vllm:prefix_cache_queries_total") == 0
    assert [answer(r) for r in cold[:4]] == [answer(r) for r in warm] == [answer(r) for r in alone]
    assert all(r["usage"]["prompt_tokens_details"]["cached_tokens"] == 1008 for r in warm)
    cached.wait_idle()
    assert cached.metric("vllm:kv_cache_usage_perc") == 0
    assert cached.metric("vllm:prefix_cache_hits_total") == cached.metric("vllm:prompt_tokens_cached_total")


def test_another_salt_shares_nothing(cached):
    body = {"prompt": "The same words in every request, again and again and again. " * 4, "max_tokens": 1}
    def hits(**more):
        return complete(cached, **body, **more)["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert hits() == 0
    assert hits() > 0
    assert hits(cache_salt="tenant") == 0
    assert hits(cache_salt="tenant") > 0


def test_priority_is_for_its_policy_only(cached, uncached):
    body = {"prompt": "x", "max_tokens": 1, "priority": 3}
    reply = requests.post(cached.url + "/v1/completions", json=body, timeout=60)
    assert reply.status_code == 400 and reply.json()["error"]["param"] == "priority"
    assert complete(uncached, **body)["usage"]["completion_tokens"] == 1
    reply = requests.post(cached.url + "/v1/completions", json={"prompt": "x", "cache_salt": ""}, timeout=60)
    assert reply.status_code == 400 and reply.json()["error"]["param"] == "cache_salt"
