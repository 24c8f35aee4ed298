"""A request's tokens never depend on what else is running: the default model, 16 requests, many ways to run them."""
import concurrent.futures

import pytest
import requests

from quire_server import MODEL, Server

PROMPTS = ["The capital of France is", "Once upon a time", "def fibonacci(n):", "1, 1, 2, 3, 5, 8,", "日本の首都は",
           "To be, or not to be", "The recipe begins with two eggs and", "In 1969, the first humans",
           "Dear Sir or Madam,", "SELECT name FROM users WHERE", "Жили-были", "The three laws of motion " * 12,
           "Water boils at", "A poem about the sea:\n", "x = ", "List the planets: " + "Mercury, Venus, Earth, " * 20]


def ask(server, index):
    """Greedy for every other request, sampled with a seed and penalties for the rest."""
    body = {"prompt": PROMPTS[index], "max_tokens": 72 + 4 * index, "ignore_eos": True, "return_token_ids": True}
    if index % 2:
        body |= {"temperature": 0.9, "top_p": 0.95, "seed": 1000 + index, "presence_penalty": 0.5, "repetition_penalty": 1.1}
    else:
        body |= {"temperature": 0}
    reply = requests.post(server.url + "/v1/completions", json=body, timeout=300)
    assert reply.status_code == 200, reply.text
    return reply.json()["choices"][0]["token_ids"]


def together(server):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(lambda i: ask(server, i), range(16)))


@pytest.fixture(scope="module")
def one_by_one():
    server = Server("--model", MODEL, "--max-model-len", "512")
    try:
        return [ask(server, i) for i in range(16)]
    finally:
        server.stop()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("budget", [16, 64, 2048])
def test_budgets_and_threads(one_by_one, budget, threads):
    server = Server("--model", MODEL, "--max-model-len", "512", "--max-num-batched-tokens", str(budget), "--threads", str(threads))
    try:
        assert together(server) == one_by_one
    finally:
        server.stop()


def test_preemption_is_invisible(one_by_one):
    server = Server("--model", MODEL, "--max-model-len", "512", "--num-gpu-blocks-override", "34")
    try:
        assert together(server) == one_by_one
        assert server.metric("vllm:num_preemptions_total") > 0
        server.wait_idle()
        assert server.metric("vllm:kv_cache_usage_perc") == 0
    finally:
        server.stop()
