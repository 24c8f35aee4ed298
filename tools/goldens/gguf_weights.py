"""Reads a GGUF file of architecture llama as fp32 tensors under their Hugging Face names.

Written from the format's description: little-endian header, typed key-value pairs, tensor table, then data whose
dimensions are listed fastest first.
"""
import mmap
import struct

import numpy as np

import gguf_blocks

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
F32, F16 = 0, 1
BLOCK_NAMES = {number: name for name, (number, _, _, _) in gguf_blocks.FORMATS.items()}
BLOCK_BYTES = {F32: (1, 4), F16: (1, 2),
               **{number: (elements, size) for number, elements, size, _ in gguf_blocks.FORMATS.values()}}

LAYER_NAMES = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}
OTHER_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


class Reader:
    """A cursor over the file's bytes."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def scalar(self, code: str):
        value, = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def string(self) -> bytes:
        size = self.scalar("Q")
        self.at += size
        return bytes(self.data[self.at - size:self.at])

    def value(self, kind: int):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            element = self.scalar("I")
            return [self.value(element) for _ in range(self.scalar("Q"))]
        return self.scalar(SCALARS[kind])


def read_file(path: str) -> tuple:
    """(metadata, {name: (type, shape with rows first, bytes)})."""
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    reader = Reader(data)
    magic, version = reader.scalar("I"), reader.scalar("I")
    assert magic == 0x46554747 and version in (2, 3), (hex(magic), version)
    num_tensors, num_pairs = reader.scalar("Q"), reader.scalar("Q")
    metadata = {}
    for _ in range(num_pairs):
        key = reader.string().decode()
        metadata[key] = reader.value(reader.scalar("I"))
    table = []
    for _ in range(num_tensors):
        name = reader.string().decode()
        dims = [reader.scalar("Q") for _ in range(reader.scalar("I"))]
        table.append((name, dims[::-1], reader.scalar("I"), reader.scalar("Q")))
    alignment = metadata.get("general.alignment", 32)
    start = (reader.at + alignment - 1) // alignment * alignment
    tensors = {}
    for name, shape, kind, offset in table:
        elements, size = BLOCK_BYTES[kind]
        count = int(np.prod(shape)) // elements * size
        tensors[name] = (kind, shape, np.frombuffer(data, np.uint8, count, start + offset))
    return metadata, tensors


def dequantize(kind: int, shape: list, raw: np.ndarray) -> np.ndarray:
    if kind == F32:
        return raw.view(np.float32).reshape(shape).copy()
    if kind == F16:
        return raw.view(np.float16).astype(np.float32).reshape(shape)
    return gguf_blocks.dequantize(BLOCK_NAMES[kind], raw).reshape(shape)


def deinterleave(rows: np.ndarray, heads: int) -> np.ndarray:
    """Undoes the order [head][i][half] in which q and k rows are stored: back to [head][half][i]."""
    per_head = rows.reshape(heads, -1, 2, *rows.shape[1:])
    return np.ascontiguousarray(per_head.swapaxes(1, 2)).reshape(rows.shape)


def huggingface_name(name: str) -> str:
    parts = name.split(".")
    if parts[0] == "blk":
        return ".".join(["model.layers", parts[1], LAYER_NAMES[parts[2]], parts[3]])
    return ".".join([OTHER_NAMES[parts[0]], parts[1]])


def load(path: str) -> tuple:
    """(metadata, {Hugging Face name: fp32 array})."""
    metadata, stored = read_file(path)
    assert metadata["general.architecture"] == b"llama"
    heads = {"attn_q": metadata["llama.attention.head_count"], "attn_k": metadata["llama.attention.head_count_kv"]}
    tensors = {}
    for name, (kind, shape, raw) in stored.items():
        values = dequantize(kind, shape, raw)
        part = name.split(".")[2] if name.startswith("blk.") else ""
        if part in heads:
            values = deinterleave(values, heads[part])
        tensors[huggingface_name(name)] = values
    return metadata, tensors
