"""The parts of the peer comparison that run no engine."""
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import report  # noqa: E402
from peers import EngineError, Settings, run_program  # noqa: E402
from peers.llama_cpp import read_batched  # noqa: E402
from peers.openvino import OpenVino  # noqa: E402
from peers.quire import read_rates  # noqa: E402
from peers.vllm import read_rates as read_vllm  # noqa: E402

TURNS = {
    "Quire": [{"decode 1": 40.0, "prefill 512": 300.0}, {"decode 1": 60.0, "prefill 512": 330.0}],
    "slow": [{"decode 1": 10.0, "prefill 512": 100.0}, {"decode 1": 50.0, "prefill 512": 100.0}],
    "fast": [{"decode 1": 20.0}, {"decode 1": 30.0}],
}


def test_ratios_are_taken_within_a_round_against_the_best_of_it():
    # 40 / 20 and 60 / 50, not 50 / 30.
    assert report.ratio_to_best(TURNS, "decode 1") == pytest.approx((2.0 + 1.2) / 2)
    assert report.ratio_to_best(TURNS, "prefill 512") == pytest.approx(3.15)
    assert report.ratio_to_best({"Quire": TURNS["Quire"]}, "decode 1") is None


def test_summary_and_table():
    lines = report.summary(TURNS, ["prefill 512", "decode 1", "decode 8"])
    assert lines["decode 1"]["engines"]["slow"]["median"] == 30
    assert lines["decode 1"]["best_peer"] == "slow"
    assert lines["decode 8"] == {"engines": {}, "best_peer": None, "ratio_to_best": None}
    json.dumps(lines)
    table = report.markdown("tiny", lines, ["Quire", "slow", "fast"])
    assert "| prefill 512 | 315.0 | 100.0 | - | 3.15 |" in table
    assert "| decode 8 | - | - | - | - |" in table


def test_lines_of_a_comparison():
    assert Settings(2, streams=(1, 8)).lines() == ["prefill 512", "decode 1", "decode 8"]


def test_figures_of_each_engine_are_read():
    assert read_rates({"rates": [{"test": "prefill", "tokens": 512, "batch": 1, "tokens_per_s": 9.5},
                                 {"test": "decode", "tokens": 48, "batch": 8, "tokens_per_s": 7.0}]}) == {
        "prefill 512": 9.5, "decode 8": 7.0}
    assert read_batched('loading\n{"pl": 8, "speed_tg": 12.5}\n') == {"decode 8": 12.5}
    assert read_vllm('loading\n{"prefill 512": 2.5}\nbye\n') == {"prefill 512": 2.5}
    for read in (read_batched, read_vllm):
        with pytest.raises(EngineError):
            read("error: no memory\n")


def test_a_program_that_fails_is_an_engine_error():
    with pytest.raises(EngineError, match="ended with 3: .*no such model"):
        run_program([sys.executable, "-c", "import sys; print('no such model', file=sys.stderr); sys.exit(3)"])


def test_openvino_reads_some_files_only():
    check = OpenVino.check
    assert check(None, pathlib.Path("SmolLM2-135M-Instruct.Q4_1.gguf")) == ""
    assert check(None, pathlib.Path("random-llama1b-Q8_0.gguf")) == ""
    assert "Q4_0" in check(None, pathlib.Path("random-llama1b-Q4_K_M.gguf"))
