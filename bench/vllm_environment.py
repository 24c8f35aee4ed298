"""What running vLLM on a CPU takes beside the program: preloaded libraries, threads, a folder it can read, cache sizes."""
import glob
import json
import os
import pathlib
import shutil
import sys

from peers import EngineError, run_program

CONVERTER = pathlib.Path(__file__).resolve().parent / "drivers/gguf_to_hf.py"
BLOCK = 128  # tokens, the CPU backend's own choice
TCMALLOC = "/usr/lib/*/libtcmalloc_minimal.so.4"


def check(venv: pathlib.Path) -> None:
    """Raises EngineError with what to do when it is not installed."""
    if not (venv / "bin/vllm").exists():
        raise EngineError(f"not installed in {venv}; `./dev bench --servers --vllm` or `--peer --peers vllm` installs it (6 GB)")


def variables(venv: pathlib.Path, threads: int) -> dict[str, str]:
    """As vLLM's manual has it for best speed: tcmalloc and Intel's OpenMP, one thread a processor, bound."""
    libraries = glob.glob(TCMALLOC)[:1] + [str(venv / "lib/libiomp5.so")]
    if len(libraries) < 2:
        print("vLLM: without tcmalloc (Debian's libtcmalloc-minimal4): somewhat slower", file=sys.stderr)
    processors = sorted(os.sched_getaffinity(0))[:threads]
    return {"LD_PRELOAD": ":".join(libraries), "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, processors)),
            "VLLM_CACHE_ROOT": str(venv / "cache"), "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1",
            "DO_NOT_TRACK": "1", "VLLM_LOGGING_LEVEL": "WARNING"}


def hf_folder(venv: pathlib.Path, model: pathlib.Path, models: pathlib.Path) -> pathlib.Path:
    """The file as a Hugging Face folder in bf16, made once and kept in `models`."""
    target = models / f"{model.stem}-hf-bf16"
    if not target.exists():
        print(f"writing {target}", file=sys.stderr)
        unfinished = target.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        models.mkdir(parents=True, exist_ok=True)
        run_program([venv / "bin/python", CONVERTER, model, unfinished])
        unfinished.rename(target)
    return target


def kv_bytes(folder: pathlib.Path, streams: int, context: int) -> int:
    """Of a bf16 KV cache for so many streams, in whole blocks, and one block that vLLM keeps for itself."""
    config = json.loads((folder / "config.json").read_text())
    token = 2 * 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * config["head_dim"]
    return (streams * -(-context // BLOCK) + 1) * BLOCK * token
