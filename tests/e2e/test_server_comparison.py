"""The comparison of servers: how processes are started, ended and weighed, and a turn of Quire alone."""
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

from quire_server import MODEL, QUIRE

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import report  # noqa: E402
import servers  # noqa: E402
import vllm_environment  # noqa: E402
from peers import EngineError  # noqa: E402
from served import Room, ServerProcess, free_port, resident  # noqa: E402

MIB = 1 << 20
HOLDS_64_MIB = "b = b'x' * (64 << 20); print(1, flush=True); input()"
# Healthy at once; a child process that nothing ends but a signal; writes the child's id.
SERVER = """
import http.server, subprocess, sys
child = subprocess.Popen(["sleep", "600"])
open(sys.argv[2], "w").write(str(child.pid))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_server_ends_with_all_its_processes(tmp_path):
    port = free_port()
    with ServerProcess([sys.executable, "-c", SERVER, port, tmp_path / "pid"], port, tmp_path / "log") as server:
        child = int((tmp_path / "pid").read_text())
        assert server.start_s > 0 and alive(child)
        held = server.resident()
        assert held["processes"] == 2 and held["rss"] > held["pss"] > 0
    deadline = time.monotonic() + 10
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(child)


def test_a_server_that_does_not_start_says_why(tmp_path):
    with pytest.raises(EngineError, match="ended with 3: no such model"):
        ServerProcess([sys.executable, "-c", "import sys; print('no such model'); sys.exit(3)"], free_port(), tmp_path / "log")


def test_memory_is_summed_over_a_process_and_those_below_it():
    parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    with subprocess.Popen([sys.executable, "-c", parent, HOLDS_64_MIB], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        alone, tree = resident.of_process(process.pid), resident.of_tree(process.pid)
        process.stdin.write(b"\n")
        process.stdin.close()
    assert tree["processes"] == 2
    for name in ("rss", "pss", "anonymous", "peak_rss"):
        assert 64 * MIB <= tree[name] - alone[name] < 96 * MIB
    assert tree["rss"] == pytest.approx(tree["anonymous"] + tree["file"], rel=0.02)


def test_the_lowest_is_the_best_of_latencies():
    turns = {"Quire": [{"ms": 10.0}], "a": [{"ms": 40.0}], "b": [{"ms": 20.0}]}
    assert report.summary(turns, ["ms"], frozenset(["ms"]))["ms"]["ratio_to_best"] == 0.5
    line = report.summary({"a": [{"ms": 40.0}], "b": [{"ms": 20.0}]}, ["ms"], frozenset(["ms"]))["ms"]
    assert line["best_peer"] == "b" and line["ratio_to_best"] is None


def test_resident_memory_against_the_plan():
    plan = {"weights": 700.0, "packed copies": 0.0, "kv cache": 100.0, "arena": 200.0}  # allowed: 1,082
    turn = {"RSS healthy MiB": 900.0, "RSS settled MiB": 1000.0, "RSS after MiB": 1082.0, "peak RSS MiB": 1083.0, "plan": plan}
    *_, healthy, _, after, peak = servers.against_plan([turn]).splitlines()
    assert "0.900 x the sum   within" in healthy
    assert after.endswith("within") and peak.endswith("1.0 MORE than allowed")


def test_a_kv_cache_of_vllm_is_whole_blocks_and_one_more(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"num_hidden_layers": 16, "num_key_value_heads": 8, "head_dim": 64}))
    assert vllm_environment.kv_bytes(tmp_path, 2, 129) == (2 * 2 + 1) * 128 * 32768
    with pytest.raises(EngineError, match="not installed"):
        vllm_environment.check(tmp_path)
    assert Room(2, 32, 512).tokens() == 16384


@pytest.mark.parametrize("mode", ["load", "memory"])
def test_a_turn_of_quire(tmp_path, mode):
    result = tmp_path / "out.json"
    words = ["--servers", "quire", "--models", MODEL, "--rounds", "1", "--clients", "2", "--requests", "2", "--input-len", "16",
             "--output-len", "8", "--json", str(result), *(["--memory"] if mode == "memory" else [])]
    done = subprocess.run([sys.executable, BENCH / "servers.py", *words], capture_output=True, text=True, timeout=300,
                          env=os.environ | {"QUIRE": QUIRE, "PEERS": str(tmp_path), "QUIRE_DEV_CACHE": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    (model,) = json.loads(result.read_text())["models"].values()
    (turn,) = model["turns"]["Quire"]
    if mode == "load":
        assert turn["failed requests"] == 0 and turn["output tok/s"] > 0 and turn["ITL p95 ms"] > 0
        assert set(turn) == set(servers.LOAD_LINES)
    else:
        assert set(turn) == {*servers.MEMORY_LINES, "plan"}
        assert turn["plan"]["kv cache"] > 0 and turn["RSS after MiB"] > turn["plan"]["weights"]
        assert "Quire, MiB: weights" in done.stdout and "x the sum" in done.stdout
