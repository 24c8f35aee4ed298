"""The engines that are compared: one file an engine.

Each file has a class with
  name: str                                   as tables show it
  check(model: pathlib.Path) -> str           empty, or why it cannot run this file
  run(model: pathlib.Path, Settings) -> dict  one turn: line ("prefill 512", "decode 8") -> tokens a second
"""
import dataclasses
import subprocess


@dataclasses.dataclass(frozen=True)
class Settings:
    threads: int
    prefill: int = 512
    streams: tuple[int, ...] = (1, 8, 16, 32)
    context: int = 16  # tokens of each stream's prompt before it decodes
    decode: int = 64   # tokens of each stream that are timed

    def lines(self) -> list[str]:
        return [f"prefill {self.prefill}"] + [f"decode {streams}" for streams in self.streams]


class EngineError(Exception):
    """An engine that did not run to its end; says what it printed last."""


def run_program(command: list, **options) -> str:
    """Standard output of a program. Raises EngineError with the end of what it said when it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise EngineError(f"{command[0]} ended with {done.returncode}: " + " / ".join(said[-3:])[-400:])
    return done.stdout
