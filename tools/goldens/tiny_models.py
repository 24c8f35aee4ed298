"""Tiny Llama checkpoints from an integer generator: the same numbers as tests/golden/tiny_model.cc writes.

tests/golden/data/tiny_models.json lists the variants; `python tiny_models.py FOLDER` writes each as a Hugging Face
folder FOLDER/<name>.
"""
import json
import pathlib
import sys

import numpy as np

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DATA = REPOSITORY / "tests" / "golden" / "data"
GAMMA = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def splitmix64(seed: int, count: int) -> np.ndarray:
    """The first `count` outputs of SplitMix64 (Steele, Lea and Flood 2014) started at `seed`."""
    state = np.uint64(seed & MASK) + np.uint64(GAMMA) * np.arange(1, count + 1, dtype=np.uint64)
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def fnv1a64(text: str) -> int:
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def uniform(name: str, seed: int, count: int, scale: np.float32, offset: np.float32) -> np.ndarray:
    """fp32 numbers in offset + [-scale, scale): 24-bit integers, scaled and shifted with one rounding each."""
    bits = splitmix64(fnv1a64(name) ^ (seed * GAMMA & MASK), count) >> np.uint64(40)
    unit = (bits.astype(np.int64) - (1 << 23)).astype(np.float32) * np.float32(2.0**-23)
    return unit * scale + offset


def round_bf16(values: np.ndarray) -> np.ndarray:
    """The bits of the nearest bfloat16 (ties to even) of finite fp32 numbers."""
    bits = values.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def has_bias(config: dict, linear: str) -> bool:
    if config["model_type"] == "qwen2":
        return linear in ("q_proj", "k_proj", "v_proj")
    return config["attention_bias"] if linear in ("q_proj", "k_proj", "v_proj", "o_proj") else config["mlp_bias"]


def tensor_shapes(config: dict) -> dict:
    """Name -> shape of every tensor of the checkpoint."""
    hidden, inner, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim", hidden // heads)
    q, kv = heads * head_dim, config["num_key_value_heads"] * head_dim
    shapes = {"model.embed_tokens.weight": (vocab, hidden), "model.norm.weight": (hidden,)}
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (vocab, hidden)
    attention = {"q_proj": (q, hidden), "k_proj": (kv, hidden), "v_proj": (kv, hidden), "o_proj": (hidden, q)}
    mlp = {"gate_proj": (inner, hidden), "up_proj": (inner, hidden), "down_proj": (hidden, inner)}
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        shapes[prefix + "input_layernorm.weight"] = (hidden,)
        shapes[prefix + "post_attention_layernorm.weight"] = (hidden,)
        for block, linears in (("self_attn.", attention), ("mlp.", mlp)):
            for name, shape in linears.items():
                shapes[prefix + block + name + ".weight"] = shape
                if has_bias(config, name):
                    shapes[prefix + block + name + ".bias"] = shape[:1]
    return shapes


def scale_and_offset(name: str, shape: tuple) -> tuple:
    """Chosen so that activations stay near 1, attention is peaked, and logits have a standard deviation over 2."""
    if "norm" in name:
        return np.float32(0.5), np.float32(1.0)
    if name.endswith(".bias"):
        return np.float32(0.25), np.float32(0.0)
    if "embed_tokens" in name or "lm_head" in name:
        return np.float32(0.5), np.float32(0.0)
    gain = np.float32(2.0) if "q_proj" in name or "k_proj" in name else np.float32(1.0)
    return np.sqrt(np.float32(3.0) / np.float32(shape[1])) * gain, np.float32(0.0)


def make_tensors(variant: dict) -> dict:
    """Name -> fp32 array, already rounded to the checkpoint's type."""
    tensors = {}
    for name, shape in tensor_shapes(variant["config"]).items():
        values = uniform(name, variant["seed"], int(np.prod(shape)), *scale_and_offset(name, shape))
        if variant["config"]["torch_dtype"] == "bfloat16":
            values = (round_bf16(values).astype(np.uint32) << 16).view(np.float32)
        tensors[name] = values.reshape(shape)
    return tensors


def checksum(tensors: dict) -> int:
    """Sum over all tensors of bits * (1 + index % 65521), modulo 2^64."""
    total = np.uint64(0)
    for values in tensors.values():
        bits = values.reshape(-1).view(np.uint32).astype(np.uint64)
        total += np.sum(bits * (1 + np.arange(bits.size, dtype=np.uint64) % np.uint64(65521)), dtype=np.uint64)
    return int(total)


def prompt_ids(variant: dict, count: int) -> list:
    numbers = splitmix64(fnv1a64("prompt") ^ (variant["seed"] * GAMMA & MASK), count)
    return [int(n % np.uint64(variant["config"]["vocab_size"])) for n in numbers]


def variants() -> list:
    return json.loads((DATA / "tiny_models.json").read_text())


def write_folder(variant: dict, folder: pathlib.Path) -> None:
    """config.json and one or several safetensors files; tensor i in order of name goes to shard i % shards."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(variant["config"], indent=1))
    dtype = torch.bfloat16 if variant["config"]["torch_dtype"] == "bfloat16" else torch.float32
    shards = [{} for _ in range(variant["shards"])]
    for index, (name, values) in enumerate(sorted(make_tensors(variant).items())):
        shards[index % len(shards)][name] = torch.from_numpy(values.copy()).to(dtype)
    if len(shards) == 1:
        save_file(shards[0], folder / "model.safetensors", metadata={"format": "pt"})
        return
    weight_map = {}
    for index, shard in enumerate(shards):
        file = f"model-{index + 1:05}-of-{len(shards):05}.safetensors"
        save_file(shard, folder / file, metadata={"format": "pt"})
        weight_map.update({name: file for name in shard})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


if __name__ == "__main__":
    for entry in variants():
        write_folder(entry, pathlib.Path(sys.argv[1]) / entry["name"])
