"""Makes the reference outputs under tests/golden/data anew: `make_goldens.py [llama] [default-model]`.

Needs the packages of requirements.txt. The default model's file is found through QUIRE_TEST_MODEL.
"""
import os
import sys

from safetensors.numpy import save_file

from tiny_models import DATA


def save(arrays: dict, name: str, about: str) -> None:
    path = DATA / name
    save_file(arrays, path, metadata={"about": about})
    path.chmod(0o644)
    print(f"{path}: {path.stat().st_size} bytes")


def main() -> None:
    wanted = sys.argv[1:] or ["llama", "default-model"]
    if "llama" in wanted:
        import llama_goldens
        save(llama_goldens.make(), "llama.safetensors", "logits of tests/golden/data/tiny_models.json")
    if "default-model" in wanted:
        model = os.environ.get("QUIRE_TEST_MODEL")
        if not model:
            raise SystemExit("set QUIRE_TEST_MODEL to the default model's GGUF file")
        import default_model_goldens
        save(default_model_goldens.make(model), "default_model.safetensors", "log-probabilities of smollm2:135m")


if __name__ == "__main__":
    main()
