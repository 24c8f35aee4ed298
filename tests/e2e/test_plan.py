"""`quire plan` as a user runs it: its figures against those of the engine, its questions, its files."""
import json
import re
import subprocess
import time
import xml.etree.ElementTree

import pytest
import requests

from quire_server import MODEL, QUIRE, Server


def quire(*words, **options):
    return subprocess.run([QUIRE, *words], capture_output=True, text=True, timeout=180, **options)


def plan(*words):
    done = quire("plan", *words, "--json")
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout)


def test_it_takes_under_two_seconds_and_agrees_with_info():
    start = time.monotonic()
    figures = plan(MODEL, "--max-model-len", "2048")
    assert time.monotonic() - start < 2
    info = quire("info", MODEL, "--max-model-len", "2048").stdout
    rank = figures["memory"]["ranks"][0]
    shown = dict(re.findall(r"^(weights|arena|kv cache) +(\S+ \S+)", info, re.M))

    def as_shown(count):
        for unit in ("B", "KiB", "MiB", "GiB"):
            if count < 999.5:
                return f"{count:.{2 if count < 9.995 else 1 if count < 99.95 else 0}f} {unit}"
            count /= 1024

    assert as_shown(rank["weights_bytes"]) == shown["weights"]
    assert as_shown(rank["arena_bytes"] + rank["scratch_bytes"]) == shown["arena"]
    blocks = int(re.search(r"(\d+) blocks of 16", info).group(1))
    assert figures["memory"]["num_blocks"] == blocks
    assert as_shown(rank["kv_cache_bytes"]) == shown["kv cache"]


CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672,
          "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256,
          "max_position_embeddings": 8192, "torch_dtype": "bfloat16"}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    return str(path)


def test_seventy_billion_parameters_from_a_config_alone(config):
    figures = plan(config, "--device", "H100", "-tp", "4", "--max-model-len", "4096")
    assert figures["model"]["parameters"] == 70_553_706_496
    assert [rank["heads"] for rank in figures["memory"]["ranks"]] == [[0, 15], [16, 31], [32, 47], [48, 63]]
    assert all(rank["kv_heads"][1] - rank["kv_heads"][0] == 1 for rank in figures["memory"]["ranks"])
    stages = plan(config, "--device", "H100", "-pp", "4", "--max-model-len", "4096")
    assert [rank["layers"] for rank in stages["memory"]["ranks"]] == [[0, 19], [20, 39], [40, 59], [60, 79]]
    text = quire("plan", config, "--device", "H100", "-tp", "4").stdout
    assert "Each rank holds 16 of 64 heads and 2 of 8 KV heads." in text


def test_bad_input_gets_one_clear_line(config, tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    for words, says in [((config, "--device", "H900"), "--device"),
                        ((config, "-tp", "3"), "--tensor-parallel-size"),
                        ((config, "-pp", "81"), "--pipeline-parallel-size"),
                        ((config, "--max-model-len", "8193"), "--max-model-len"),
                        ((config, "--memory", "lots"), "--memory"),
                        ((config, "-q", "int3"), "--quantization"),
                        ((config, "--lengths", "/no/such"), "/no/such"),
                        (("/no/such.gguf",), "/no/such.gguf"),
                        (("no-such-model",), "no-such-model"),
                        ((str(broken),), "broken.json")]:
        done = quire("plan", *words)
        assert done.returncode == 1 and says in done.stderr, (words, done.stderr)
        assert done.stderr.count("\n") == 1, done.stderr


def test_the_longest_context_and_the_cheapest_change():
    fits = plan("Llama-3.1-8B", "--device", "RTX 4090", "--max-model-len", "auto")
    assert fits["memory"]["fits"] and 16_384 < fits["memory"]["max_model_len"] < 131_072
    tight = quire("plan", "Llama-3.1-8B", "--device", "RTX 4090", "--json")
    assert tight.returncode == 3
    changes = [each for each in json.loads(tight.stdout)["alternatives"] if each["fits"]]
    assert changes[0]["change"] == f"--max-model-len {fits['memory']['max_model_len']}"


def test_users_are_played_on_the_scheduler(tmp_path):
    lengths = tmp_path / "lengths.jsonl"
    lengths.write_text("".join(json.dumps({"input_len": 50 * i, "output_len": 20 * i}) + "\n" for i in range(1, 9)))
    words = ("SmolLM2-135M", "--device", "Ryzen 9 7950X", "--memory", "700MiB", "--users", "64", "--max-model-len", "1024",
             "--lengths", str(lengths))
    first, second = plan(*words)["traffic"], plan(*words)["traffic"]
    assert first == second
    assert 0 < first["preemption_probability"] <= 1
    assert plan(*words, "--seed", "1")["traffic"] != first
    ample = plan(*["8GiB" if word == "700MiB" else word for word in words])["traffic"]
    assert ample["preemption_probability"] == 0


def test_pictures_and_page(tmp_path):
    page = tmp_path / "plan.html"
    done = quire("plan", "Llama-3.1-8B", "--device", "H100", "--html", str(page), "--svg", str(tmp_path / "svg"))
    assert done.returncode == 0, done.stderr
    for name in ("ledger", "memory", "roofline", "throughput"):
        root = xml.etree.ElementTree.parse(tmp_path / "svg" / f"{name}.svg").getroot()
        assert root.get("width") == "1200"
    text = page.read_text()
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "") and "https://" not in text


def test_serve_runs_the_written_configuration(tmp_path):
    written = tmp_path / "serve.yaml"
    done = quire("plan", MODEL, "--memory", "1GiB", "--max-model-len", "1024", "--write-config", str(written))
    assert done.returncode == 0, done.stderr
    for key in ("dtype", "tensor_parallel_size", "gpu_memory_utilization", "max_model_len", "max_num_batched_tokens",
                "max_num_seqs", "enable_chunked_prefill", "block_size", "swap_space", "enforce_eager", "disable_log_stats"):
        assert re.search(rf"^# .+\.\n{key}: ", written.read_text(), re.M), key
    with Server("--config", str(written), "--served-model-name", "planned") as server:
        models = requests.get(server.url + "/v1/models", timeout=10).json()["data"]
        assert models[0]["id"] == "planned" and models[0]["max_model_len"] == 1024
    with Server("--config", str(written), "--max-model-len", "512") as server:
        models = requests.get(server.url + "/v1/models", timeout=10).json()["data"]
        assert models[0]["max_model_len"] == 512, "the command line goes before the file"


def test_a_wrong_key_of_a_configuration_is_named(tmp_path):
    wrong = tmp_path / "serve.yaml"
    wrong.write_text("max_modl_len: 4\n")
    done = quire("serve", "--config", str(wrong))
    assert done.returncode == 1 and "max_modl_len" in done.stderr
