"""vLLM's CPU backend, in bf16, from a Hugging Face folder made of the same GGUF file: it reads no GGUF itself."""
import pathlib

import vllm_environment

from . import Room, ServerProcess, free_port


class VllmServer:
    name = "vLLM (bf16)"

    def __init__(self, venv: pathlib.Path, models: pathlib.Path, options: tuple[str, ...] = ()):
        vllm_environment.check(venv)
        self.venv, self.models, self.options = venv, models, options

    def check(self, model: pathlib.Path) -> str:
        return ""

    def start(self, model: pathlib.Path, room: Room, log: pathlib.Path) -> ServerProcess:
        folder = vllm_environment.hf_folder(self.venv, model, self.models)
        port = free_port()
        return ServerProcess(
            [self.venv / "bin/vllm", "serve", folder, "--host", "127.0.0.1", "--port", port, "--dtype", "bfloat16",
             "--max-num-seqs", room.streams, "--max-model-len", room.context,
             "--kv-cache-memory-bytes", vllm_environment.kv_bytes(folder, room.streams, room.context),
             "--generation-config", "vllm", "--disable-uvicorn-access-log", *self.options],
            port, log, vllm_environment.variables(self.venv, room.threads))
