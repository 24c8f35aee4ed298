"""Writes a GGUF file of a Llama as a Hugging Face folder in bf16, for engines that read no GGUF.

  gguf_to_hf.py MODEL.gguf FOLDER

Text is cut by a plain byte-level rule, whatever the file asks for: prompts of the benchmarks are token ids.
"""
import json
import pathlib
import sys

import gguf
import numpy
import torch
from safetensors.torch import save_file

LAYER = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
WHOLE = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
         "output.weight": "lm_head.weight"}
SPECIAL = 3  # a token's type in GGUF


def hf_name(name: str) -> str:
    if name in WHOLE:
        return WHOLE[name]
    _, layer, kind, ending = name.split(".")
    return f"model.layers.{layer}.{LAYER[kind]}.{ending}"


def halves_apart(rows: numpy.ndarray, heads: int) -> numpy.ndarray:
    """[heads * head_dim, in]: GGUF has a head's rotary pairs side by side, Hugging Face half a head apart."""
    return rows.reshape(heads, -1, 2, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def tensors(reader: gguf.GGUFReader, heads: int, kv_heads: int) -> dict:
    out = {}
    for tensor in reader.tensors:
        if tensor.name == "rope_freqs.weight":
            raise SystemExit("gguf_to_hf.py: scaled rotary frequencies are not carried over")
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        if tensor.name.endswith("attn_q.weight"):
            values = halves_apart(values, heads)
        elif tensor.name.endswith("attn_k.weight"):
            values = halves_apart(values, kv_heads)
        out[hf_name(tensor.name)] = torch.from_numpy(numpy.array(values)).to(torch.bfloat16)
    return out


def config(field, tied: bool) -> dict:
    hidden, heads = field("llama.embedding_length"), field("llama.attention.head_count")
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16",
            "hidden_size": hidden, "intermediate_size": field("llama.feed_forward_length"),
            "num_hidden_layers": field("llama.block_count"), "num_attention_heads": heads,
            "num_key_value_heads": field("llama.attention.head_count_kv"), "head_dim": hidden // heads,
            "max_position_embeddings": field("llama.context_length"), "rope_theta": field("llama.rope.freq_base"),
            "rms_norm_eps": field("llama.attention.layer_norm_rms_epsilon"), "hidden_act": "silu",
            "vocab_size": len(field("tokenizer.ggml.tokens")), "tie_word_embeddings": tied,
            "bos_token_id": field("tokenizer.ggml.bos_token_id"), "eos_token_id": field("tokenizer.ggml.eos_token_id")}


def tokenizer(field) -> dict:
    tokens, types = field("tokenizer.ggml.tokens"), field("tokenizer.ggml.token_type")
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
    added = [{"id": index, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for index, text in enumerate(tokens) if types[index] == SPECIAL]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": {text: index for index, text in enumerate(tokens)},
                      "merges": field("tokenizer.ggml.merges")}}


def main() -> None:
    source, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    reader = gguf.GGUFReader(source)

    def field(name: str):
        return reader.fields[name].contents()

    names = {tensor.name for tensor in reader.tensors}
    folder.mkdir(parents=True)
    tokens = field("tokenizer.ggml.tokens")
    ends = {name: tokens[field(f"tokenizer.ggml.{name}_id")] for name in ("bos_token", "eos_token")}
    for name, content in (("config.json", config(field, "output.weight" not in names)), ("tokenizer.json", tokenizer(field)),
                          ("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **ends})):
        (folder / name).write_text(json.dumps(content))
    weights = tensors(reader, field("llama.attention.head_count"), field("llama.attention.head_count_kv"))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main()
