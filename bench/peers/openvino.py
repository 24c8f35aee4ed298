"""OpenVINO GenAI: its ContinuousBatchingPipeline on the same GGUF file, from the package openvino-genai."""
import json
import pathlib

from . import Settings, run_program

# In a folder of its own: this file has the name of a package that it imports.
DRIVER = pathlib.Path(__file__).resolve().parent.parent / "drivers/openvino_genai_driver.py"
# What its GGUF reader takes.
READABLE = ("Q4_0", "Q4_1", "Q8_0")


class OpenVino:
    name = "OpenVINO"

    def __init__(self, python: pathlib.Path):
        self.python = python
        run_program([python, "-c", "import openvino_genai"])

    def check(self, model: pathlib.Path) -> str:
        if any(kind in model.name for kind in READABLE):
            return ""
        return "its GGUF reader takes " + ", ".join(READABLE)

    def run(self, model: pathlib.Path, settings: Settings) -> dict:
        out = run_program([self.python, DRIVER, model, settings.threads, settings.prefill,
                           ",".join(str(count) for count in settings.streams), settings.context, settings.decode])
        return json.loads(out.splitlines()[-1])
