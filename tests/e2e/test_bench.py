"""`quire bench`, run as a user runs it: against the server under test, and alone."""
import json
import subprocess
import xml.etree.ElementTree

import pytest

from quire_server import MODEL, QUIRE

PERCENTILES = ("mean", "p50", "p90", "p95", "p99", "max")


def bench(*words, timeout=300, code=0):
    done = subprocess.run([QUIRE, "bench", *words], capture_output=True, text=True, timeout=timeout)
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout + done.stderr


def serve_bench(server, tmp_path, *words, code=0):
    result = tmp_path / "result.json"
    output = bench("serve", "--base-url", server.url, "--save-result", str(result), *words, code=code)
    return json.loads(result.read_text()), output


def test_closed_loop_counts_what_the_server_counts(server, tmp_path):
    server.wait_idle()
    generated = server.metric("vllm:generation_tokens_total")
    prompts = server.metric("vllm:prompt_tokens_total")
    result, output = serve_bench(server, tmp_path, "--num-prompts", "12", "--max-concurrency", "4", "--random-input-len", "20",
                                 "--random-output-len", "6", "--ignore-eos")
    assert result["completed"] == 12 and result["failed"] == 0 and result["errors"] == {}
    assert result["total_input_tokens"] == 240 and result["total_output_tokens"] == 72  # ids: lengths are exact
    assert server.metric("vllm:generation_tokens_total") - generated == 72
    assert server.metric("vllm:prompt_tokens_total") - prompts == 240
    assert result["model_id"] == MODEL
    for what in ("ttft", "tpot", "itl", "e2el"):
        values = [result[f"{p}_{what}_ms"] for p in PERCENTILES]
        assert all(v > 0 for v in values) and values[1:] == sorted(values[1:])
    assert result["p99_ttft_ms"] <= result["p99_e2el_ms"]
    assert result["output_throughput"] == pytest.approx(72 / result["duration"])
    assert "TTFT" in output and "output tokens/s" in output


def test_open_loop_takes_the_time_of_its_arrivals(server, tmp_path):
    result, _ = serve_bench(server, tmp_path, "--num-prompts", "20", "--request-rate", "10", "--random-input-len", "8",
                            "--random-output-len", "2", "--ignore-eos", "--seed", "1")
    assert result["completed"] == 20
    assert result["duration"] > 0.8  # 20 arrivals at 10 a second: 2 s on average, seeded


def test_chats_with_shared_prefixes_and_lengths_of_a_file(server, tmp_path):
    lengths = tmp_path / "lengths.jsonl"
    lengths.write_text('{"input_len": 10, "output_len": 3}\n{"input_len": 20, "output_len": 5}\n')
    result, _ = serve_bench(server, tmp_path, "--endpoint", "chat", "--num-prompts", "6", "--lengths", str(lengths),
                            "--prefix-len", "32", "--prefix-groups", "2", "--ignore-eos")
    assert result["completed"] == 6 and result["total_output_tokens"] == 3 * (3 + 5)
    assert result["total_input_tokens"] > 6 * 32


def test_256_streams_at_once(server, tmp_path):
    result, _ = serve_bench(server, tmp_path, "--num-prompts", "256", "--random-input-len", "4", "--random-output-len", "4",
                            "--ignore-eos")
    assert result["completed"] == 256 and result["total_output_tokens"] == 1024


def test_refusals_are_counted_and_told(server, tmp_path):
    result, output = serve_bench(server, tmp_path, "--num-prompts", "2", "--random-input-len", "9000", "--random-output-len",
                                 "2", code=1)
    assert result["completed"] == 0 and result["failed"] == 2
    assert all("status 400" in message and "8192" in message for message in result["errors"])
    assert "2 times: status 400" in output


def test_no_server_is_one_line_and_exit_code_1():
    output = bench("serve", "--base-url", "http://127.0.0.1:9", "--num-prompts", "1", code=1)
    assert output.count("\n") == 1 and "cannot connect" in output


def test_kv_waste_is_below_the_papers_4_percent(tmp_path):
    result = tmp_path / "kv.json"
    bench("kv", "--save-result", str(result))
    figures = json.loads(result.read_text())
    by_size = {entry["block_size"]: entry for entry in figures["paged"]}
    assert all(entry["requests"] == 2000 for entry in by_size.values())
    assert 0 < by_size[16]["waste"] < 0.04
    assert by_size[16]["waste"] < by_size[32]["waste"] < by_size[128]["waste"] < figures["contiguous"]["waste"]


def test_trace_draws_text_and_svg(tmp_path):
    svg = tmp_path / "trace.svg"
    text = bench("trace", "--svg", str(svg))
    assert "row 1   B7  B   B   B┤  D4  D" in text
    assert xml.etree.ElementTree.parse(svg).getroot().tag.endswith("svg")
    own = bench("trace", "--options", "seqs 2 blocks 8 block_tokens 4", "--submit", "x 6 max 3 n 2")
    assert "x.1" in own and "copy block" in own


def test_batching_measures_both_modes(tmp_path):
    result = tmp_path / "batching.json"
    bench("batching", "--model", MODEL, "--num-prompts", "8", "--batch", "4", "--max-output-len", "16", "--rounds", "1",
          "--random-input-len", "4", "--save-result", str(result), "--quiet")
    figures = json.loads(result.read_text())
    assert figures["ratio"] == pytest.approx(figures["continuous_output_throughput"] / figures["static_output_throughput"])
    assert figures["continuous_steps"] <= figures["static_steps"]  # in steps, noise aside
