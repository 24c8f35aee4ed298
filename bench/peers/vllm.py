"""vLLM's CPU backend: its engine in bf16, on a Hugging Face folder made of the same file."""
import json
import os
import pathlib

import vllm_environment

from . import EngineError, Settings, run_program

# In a folder of its own: this file has the name of a package that it imports.
DRIVER = pathlib.Path(__file__).resolve().parent.parent / "drivers/vllm_driver.py"


class Vllm:
    name = "vLLM"

    def __init__(self, python: pathlib.Path):
        self.venv, self.models = pathlib.Path(os.environ["VLLM"]), pathlib.Path(os.environ["QUIRE_DEV_CACHE"]) / "models"
        vllm_environment.check(self.venv)

    def check(self, model: pathlib.Path) -> str:
        return "" if "BF16" in model.name else "it computes in bf16 what the file has in other types"

    def run(self, model: pathlib.Path, settings: Settings) -> dict:
        folder = vllm_environment.hf_folder(self.venv, model, self.models)
        # Streams run up to a block longer than they are timed, and the prompt has one to itself.
        kv_bytes = vllm_environment.kv_bytes(folder, max(settings.streams) + 1,
                                             max(settings.prefill, settings.context + settings.decode) + 128)
        out = run_program([self.venv / "bin/python", DRIVER, folder, kv_bytes, settings.prefill,
                           ",".join(str(count) for count in settings.streams), settings.context, settings.decode],
                          env=os.environ | vllm_environment.variables(self.venv, settings.threads))
        return read_rates(out)


def read_rates(output: str) -> dict:
    """The driver's line; the engine's processes print before and behind it."""
    rates = [line for line in output.splitlines() if line.startswith('{"prefill')]
    if not rates:
        raise EngineError("the driver printed no figures: " + " / ".join(output.strip().splitlines()[-3:])[-400:])
    return json.loads(rates[-1])
