"""Quire itself: `quire serve`."""
import json
import pathlib

from . import Room, ServerProcess, free_port

# What the bound on resident memory speaks of, as the table at start has it.
COUNTED = ("weights", "packed copies", "kv cache", "arena")
BLOCK = 16


class QuireServer:
    name = "Quire"

    def __init__(self, binary: pathlib.Path, options: tuple[str, ...] = ()):
        self.binary, self.options = binary, options

    def check(self, model: pathlib.Path) -> str:
        return ""

    def start(self, model: pathlib.Path, room: Room, log: pathlib.Path) -> ServerProcess:
        port = free_port()
        return ServerProcess(
            [self.binary, "serve", model, "--host", "127.0.0.1", "--port", port, "--threads", room.threads,
             "--max-model-len", room.context, "--num-gpu-blocks-override", -(-room.tokens() // BLOCK),
             "--enable-debug-endpoints", *self.options], port, log)


def printed_plan(server: ServerProcess) -> dict[str, int]:
    """Bytes by line of the table that the server printed at start."""
    return {line: size for line, size in json.loads(server.get("/debug/memory")[1])["plan"].items() if line in COUNTED}
