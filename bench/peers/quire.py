"""Quire itself: `quire bench model`."""
import json
import pathlib

from . import Settings, run_program


class Quire:
    name = "Quire"

    def __init__(self, binary: pathlib.Path, options: tuple[str, ...] = ()):
        self.binary = binary
        self.options = options  # e.g. --activation-dtype bf16

    def check(self, model: pathlib.Path) -> str:
        return ""

    def run(self, model: pathlib.Path, settings: Settings) -> dict:
        streams = ",".join(str(count) for count in settings.streams)
        out = run_program([self.binary, "bench", "model", model, "--threads", settings.threads, "--rounds", 1,
                           "--prefill", settings.prefill, "--batch", streams, "--context", settings.context,
                           "--decode", settings.decode, "--json", "-", "--quiet", *self.options])
        return read_rates(json.loads(out)["models"][0])


def read_rates(result: dict) -> dict:
    """tokens a second by line of one model of `quire bench model --json`."""
    rates = {}
    for rate in result["rates"]:
        line = f"prefill {rate['tokens']}" if rate["test"] == "prefill" else f"decode {rate['batch']}"
        rates[line] = rate["tokens_per_s"]
    return rates
