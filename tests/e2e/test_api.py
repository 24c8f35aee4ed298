"""What clients of the OpenAI API rely on, against the default model."""
import json
import math
import subprocess

import openai
import pytest
import requests

from quire_server import MODEL

JAPANESE_SYSTEM = "あなたは親切なアシスタントです。簡潔に答えてください。"


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none")


def post(server, path, **body):
    return requests.post(server.url + path, json=body, timeout=120)


def events(response):
    """The data lines of a server-sent event stream, [DONE] checked and left out."""
    lines = [line[6:] for line in response.iter_lines(decode_unicode=True) if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_curl_chat_request_in_japanese(server):
    body = {"model": MODEL, "max_tokens": 32,
            "messages": [{"role": "user", "content": "日本の首都はどこですか。一文で答えてください。"}]}
    done = subprocess.run(["curl", "-sS", server.url + "/v1/chat/completions", "-H", "Content-Type: application/json",
                           "-d", json.dumps(body, ensure_ascii=False)], capture_output=True, check=True, timeout=120)
    reply = json.loads(done.stdout.decode("utf-8"))
    assert reply["object"] == "chat.completion"
    assert reply["choices"][0]["message"]["role"] == "assistant"
    assert reply["choices"][0]["message"]["content"]
    assert reply["usage"]["completion_tokens"] <= 32
    assert reply["usage"]["total_tokens"] == reply["usage"]["prompt_tokens"] + reply["usage"]["completion_tokens"]


def test_openai_client_streams_with_a_japanese_system_prompt(client):
    stream = client.chat.completions.create(
        model=MODEL, stream=True, stream_options={"include_usage": True}, max_tokens=48, temperature=0.7, seed=7,
        messages=[{"role": "system", "content": JAPANESE_SYSTEM}, {"role": "user", "content": "自己紹介をしてください。"}])
    chunks = list(stream)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens <= 48
    finishes = [c.choices[0].finish_reason for c in chunks[:-1]]
    assert finishes[-1] in ("stop", "length") and all(f is None for f in finishes[:-1])
    text = "".join(c.choices[0].delta.content or "" for c in chunks[:-1])
    whole = client.chat.completions.create(
        model=MODEL, max_tokens=48, temperature=0.7, seed=7,
        messages=[{"role": "system", "content": JAPANESE_SYSTEM}, {"role": "user", "content": "自己紹介をしてください。"}])
    assert text == whole.choices[0].message.content  # the same seed, streamed or not


def test_completion_names_paris(client):
    reply = client.completions.create(model=MODEL, prompt="The capital of France is", max_tokens=8, temperature=0)
    assert "Paris" in reply.choices[0].text


def test_prompt_as_text_as_ids_and_as_lists(server):
    ids = post(server, "/v1/completions", prompt="Hello there", max_tokens=1, temperature=0, return_token_ids=True)
    choice = ids.json()["choices"][0]
    prompt_ids = choice["prompt_token_ids"]
    assert len(prompt_ids) >= 2 and len(choice["token_ids"]) == 1
    single = post(server, "/v1/completions", prompt="Hello there", max_tokens=6, temperature=0).json()
    by_ids = post(server, "/v1/completions", prompt=prompt_ids, max_tokens=6, temperature=0).json()
    several = post(server, "/v1/completions", prompt=["Hello there", "One two three"], max_tokens=6, temperature=0).json()
    nested = post(server, "/v1/completions", prompt=[prompt_ids, prompt_ids], max_tokens=6, temperature=0).json()
    text = single["choices"][0]["text"]
    assert by_ids["choices"][0]["text"] == text
    assert [c["index"] for c in several["choices"]] == [0, 1] and several["choices"][0]["text"] == text
    assert [c["text"] for c in nested["choices"]] == [text, text]


def test_n_choices_differ_and_repeat_with_their_seed(server):
    body = dict(prompt="Once upon a time", n=4, max_tokens=16, temperature=1.0, seed=11)
    first = post(server, "/v1/completions", **body).json()["choices"]
    again = post(server, "/v1/completions", **body).json()["choices"]
    assert [c["index"] for c in first] == [0, 1, 2, 3]
    assert len({c["text"] for c in first}) > 1
    assert [c["text"] for c in first] == [c["text"] for c in again]


def test_stop_strings_end_the_text_before_them(server):
    free = post(server, "/v1/completions", prompt="1, 2, 3, 4,", max_tokens=24, temperature=0).json()["choices"][0]["text"]
    stop = free[5:8]
    reply = post(server, "/v1/completions", prompt="1, 2, 3, 4,", max_tokens=24, temperature=0, stop=stop).json()
    choice = reply["choices"][0]
    assert choice["text"] == free[:free.index(stop)]
    assert choice["finish_reason"] == "stop" and choice["stop_reason"] == stop
    streamed = requests.post(server.url + "/v1/completions", stream=True, timeout=60,
                             json=dict(prompt="1, 2, 3, 4,", max_tokens=24, temperature=0, stop=[stop], stream=True))
    assert "".join(e["choices"][0]["text"] for e in events(streamed)) == choice["text"]


def test_logprobs_of_chat_and_completions(client, server):
    reply = client.chat.completions.create(model=MODEL, max_tokens=5, temperature=0, logprobs=True, top_logprobs=3,
                                           messages=[{"role": "user", "content": "Say hi."}])
    content = reply.choices[0].logprobs.content
    assert len(content) == reply.usage.completion_tokens
    for position in content:
        assert len(position.top_logprobs) == 3
        assert position.logprob == max(t.logprob for t in position.top_logprobs)  # greedy
    legacy = post(server, "/v1/completions", prompt="The sky is", max_tokens=4, temperature=0, logprobs=2, echo=True).json()
    logprobs = legacy["choices"][0]["logprobs"]
    assert logprobs["token_logprobs"][0] is None and all(v <= 0 for v in logprobs["token_logprobs"][1:])
    assert "".join(logprobs["tokens"]) == legacy["choices"][0]["text"]
    assert logprobs["text_offset"][1] == len(logprobs["tokens"][0])


def test_scoring_a_prompt_alone(server):
    """lm-eval's request: echo, logprobs, nothing generated."""
    for max_tokens in (0, 1):
        reply = post(server, "/v1/completions", prompt="The capital of France is Paris.", max_tokens=max_tokens, echo=True,
                     logprobs=1, temperature=0)
        assert reply.status_code == 200, reply.text
        values = reply.json()["choices"][0]["logprobs"]["token_logprobs"]
        assert values[0] is None and all(math.isfinite(v) for v in values[1:]) and len(values) >= 6
    extra = post(server, "/v1/completions", prompt="The capital of France is Paris.", max_tokens=1, prompt_logprobs=1).json()
    listed = extra["choices"][0]["prompt_logprobs"]
    assert listed[0] is None and all(len(p) in (1, 2) for p in listed[1:])


def test_content_parts_and_developer_role(server):
    parts = [{"type": "text", "text": "Say"}, {"type": "text", "text": "hi."}]
    split = post(server, "/v1/chat/completions", messages=[{"role": "developer", "content": "Be brief."},
                                                           {"role": "user", "content": parts}], max_tokens=8, temperature=0)
    joined = post(server, "/v1/chat/completions", messages=[{"role": "system", "content": "Be brief."},
                                                            {"role": "user", "content": "Say\nhi."}], max_tokens=8, temperature=0)
    assert split.json()["choices"][0]["message"] == joined.json()["choices"][0]["message"]


@pytest.mark.parametrize("body, status, param", [
    ({"prompt": "x", "temperature": -1}, 400, "temperature"),
    ({"prompt": "x", "n": 0}, 400, "n"),
    ({"prompt": "x", "n": 4294967297}, 400, "n"),
    ({"prompt": "x", "max_tokens": "5"}, 400, "max_tokens"),
    ({"prompt": "x", "tools": [{"type": "function"}]}, 400, "tools"),
    ({"prompt": "x", "best_of": 3}, 400, "best_of"),
    ({"prompt": "x", "logit_bias": {"999999": 1}}, 400, "logit_bias"),
    ({"prompt": "x", "stop_token_ids": [999999]}, 400, "stop_token_ids"),
    ({"prompt": [999999]}, 400, "prompt"),
    ({"prompt": []}, 400, "prompt"),
    ({}, 400, "prompt"),
    ({"prompt": "x", "logprobs": 21}, 400, "logprobs"),
    ({"prompt": "x", "stream_options": {"include_usage": True}}, 400, "stream_options"),
    ({"prompt": "x", "model": "nobody"}, 404, "model"),
])
def test_bad_values_are_refused_by_name(server, body, status, param):
    reply = post(server, "/v1/completions", **body)
    assert reply.status_code == status, reply.text
    error = reply.json()["error"]
    assert set(error) == {"message", "type", "param", "code"} and error["code"] == status
    assert error["param"] == param, error


def test_neutral_values_of_unsupported_fields_pass(server):
    reply = post(server, "/v1/chat/completions", messages=[{"role": "user", "content": "hi"}], max_tokens=2, tools=[],
                 tool_choice="none", response_format={"type": "text"}, stop=None, logit_bias={}, user="me", best_of=1,
                 parallel_tool_calls=True, unknown_field=1)
    assert reply.status_code == 200, reply.text


def test_context_overflow_reports_three_numbers(server):
    reply = post(server, "/v1/completions", prompt=[1] * 8000, max_tokens=500)
    assert reply.status_code == 400
    message = reply.json()["error"]["message"]
    assert "8192" in message and "8000" in message and "500" in message


def test_http_errors(server):
    assert requests.get(server.url + "/nothing", timeout=5).status_code == 404
    assert requests.get(server.url + "/v1/completions", timeout=5).status_code == 405
    bad = requests.post(server.url + "/v1/completions", data="{", timeout=5)
    assert bad.status_code == 400 and "JSON" in bad.json()["error"]["message"]
    deep = requests.post(server.url + "/v1/completions", data='{"prompt":' + "[" * 100000, timeout=5)
    assert deep.status_code == 400


def test_models_version_and_metrics(client, server):
    models = client.models.list().data
    assert models[0].id == MODEL and models[0].max_model_len == 8192 and models[0].owned_by
    assert requests.get(server.url + "/version", timeout=5).json()["version"]
    server.wait_idle()
    before = server.metric("vllm:generation_tokens_total")
    post(server, "/v1/completions", prompt="Hi", max_tokens=7, ignore_eos=True)
    assert server.metric("vllm:generation_tokens_total") == before + 7
    assert server.metric("vllm:request_success_total", 'finished_reason="length"') >= 1
    assert server.metric("vllm:time_to_first_token_seconds_count") >= 1
    assert server.metric("vllm:kv_cache_usage_perc") == 0
