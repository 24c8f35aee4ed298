"""The commands that measure machine, kernels and models, with as few repetitions as they take."""
import json
import os
import subprocess

import pytest

from quire_server import MODEL, QUIRE


def quire(*words, code=0, **environment):
    done = subprocess.run([QUIRE, *words], capture_output=True, text=True, timeout=300, env=os.environ | environment)
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout, done.stderr


def test_ceilings_are_told_and_kept(tmp_path):
    figures = tmp_path / "ceilings.json"
    text, progress = quire("bench", "ceilings", "--threads", "2", "--repetitions", "1", "--json", str(figures),
                           XDG_CACHE_HOME=str(tmp_path))
    for word in ("memory, huge pages", "memory, 4 KiB pages", "fp32", "int8", "barrier"):
        assert word in text
    assert "figures, 100 %" in progress
    measured = json.loads(figures.read_text())
    assert {row["streams"] for row in measured["read_gbs"]} == {1, 2, 4, 8}
    assert {row["threads"] for row in measured["peak_gops"]} == {1, 2}
    summary = measured["summary"]
    assert summary["read_gbs"] == max(row["median"] for row in measured["read_gbs"]
                                      if row["huge_pages"] and row["threads"] == 2)
    (kept,) = (tmp_path / "quire").glob("ceilings-*-2t.json")
    assert json.loads(kept.read_text()) == summary


def test_a_small_reading_is_not_kept(tmp_path):
    text, progress = quire("bench", "ceilings", "--threads", "1", "--repetitions", "1", "--read-mib", "1", "--quiet",
                           XDG_CACHE_HOME=str(tmp_path))
    assert "1 threads" in text and progress == ""
    assert not (tmp_path / "quire").exists()


def test_kernels_beside_their_ceilings(tmp_path):
    text, _ = quire("bench", "kernels", "--threads", "2", "--rounds", "1", "--shapes", "64x128", "--m", "1,5",
                    "--layouts", "int8,int4-g64", "--activations", "int8", "--contexts", "64", "--cold-mib", "1", "--json",
                    str(tmp_path / "kernels.json"))
    assert "int4-g64 x int8" in text and "decode attention" in text
    figures = json.loads((tmp_path / "kernels.json").read_text())
    assert {(row["layout"], row["m"]) for row in figures["linear"]} >= {("int8", 1), ("int8", 5)}
    for row in figures["linear"]:
        assert row["gops"] == pytest.approx(2 * row["m"] * 64 * 128 / row["seconds"] / 1e9)
        assert row["bound"] in ("read", "peak") and row["share_of_ceiling"] > 0
    assert {row["kv_dtype"] for row in figures["attention"]} == {"BF16", "F32"}


def test_kernels_refuse_what_they_do_not_know():
    _, error = quire("bench", "kernels", "--layouts", "int3", code=1)
    assert "--layouts" in error and "int4-g32" in error
    _, error = quire("bench", "kernels", "--shapes", "64", code=1)
    assert "--shapes" in error and "8192x2048" in error


def test_model_by_length_and_batch(tmp_path):
    text, _ = quire("bench", "model", MODEL, "--prefill", "32", "--batch", "1,2", "--context", "8", "--decode", "4",
                    "--rounds", "1", "--ops", "--json", str(tmp_path / "model.json"))
    assert "prefill 32" in text and "decode 2 x" in text and "mlp.down_proj" in text and "lm_head" in text
    (model,) = json.loads((tmp_path / "model.json").read_text())["models"]
    assert [(rate["test"], rate["batch"]) for rate in model["rates"]] == [("prefill", 1), ("decode", 1), ("decode", 2)]
    for rate in model["rates"]:
        tokens = rate["tokens"] if rate["test"] == "prefill" else rate["batch"]
        assert rate["tokens_per_s"] == pytest.approx(tokens / rate["seconds"])
    assert len(model["ops"]) == 3
    # All of the weights are read in every decode step, and little else at this context.
    decode = model["rates"][1]
    assert decode["gbs"] * 1e9 * decode["seconds"] == pytest.approx(model["weight_bytes"], rel=0.05)


def test_perplexity_under_several_activation_types(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("The history of the city begins with a small market beside the river. " * 40)
    out, _ = quire("perplexity", MODEL, str(text), "--window", "64", "--windows", "2", "--compare", "fp32,bf16,int8",
                   "--json", str(tmp_path / "ppl.json"))
    assert "2 windows of 64 tokens, 126 tokens scored" in out
    figures = json.loads((tmp_path / "ppl.json").read_text())
    fp32, bf16, int8 = figures["scores"]
    assert 1 < fp32["perplexity"] < 40
    assert fp32["mean_kl"] == 0 and 0 < bf16["mean_kl"] < int8["mean_kl"] < 0.05
    assert int8["ratio"] == pytest.approx(1, abs=0.05)


def test_perplexity_needs_a_whole_window(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("Too short.")
    _, error = quire("perplexity", MODEL, str(text), "--quiet", code=1)
    assert "512 tokens or more" in error
