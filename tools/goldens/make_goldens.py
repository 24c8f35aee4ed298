"""Makes the reference outputs under tests/golden/data anew: `make_goldens.py [llama] [default-model] [blocks]`.

Needs the packages of requirements.txt. The default model is QUIRE_TEST_MODEL, or what `quire pull` left in the cache.
"""
import json
import os
import pathlib
import sys

from safetensors.numpy import save_file

from tiny_models import DATA, REPOSITORY


def default_model() -> str:
    """QUIRE_TEST_MODEL, or the catalogue's default where ModelStore publishes it."""
    if path := os.environ.get("QUIRE_TEST_MODEL"):
        return path
    catalogue = json.loads((REPOSITORY / "quire" / "hub" / "catalogue.json").read_text())
    entry, = (e for e in catalogue["models"] if e.get("default"))
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return str(cache / "quire" / "models" / entry["sha256"][:16] / entry["file"])


def save(arrays: dict, name: str, about: str) -> None:
    path = DATA / name
    save_file(arrays, path, metadata={"about": about})
    path.chmod(0o644)
    print(f"{path}: {path.stat().st_size} bytes")


def main() -> None:
    wanted = sys.argv[1:] or ["llama", "default-model", "blocks"]
    if "llama" in wanted:
        import llama_goldens
        save(llama_goldens.make(), "llama.safetensors", "logits of tests/golden/data/tiny_models.json")
    if "blocks" in wanted:
        import gguf_blocks
        save(gguf_blocks.make(), "gguf_blocks.safetensors", "random blocks of each GGUF format and what they stand for")
    if "default-model" in wanted:
        import default_model_goldens
        save(default_model_goldens.make(default_model()), "default_model.safetensors", "log-probabilities of smollm2:135m")


if __name__ == "__main__":
    main()
