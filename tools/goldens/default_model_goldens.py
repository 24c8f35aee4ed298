"""Log-probabilities of the default model by transformers, on the weights dequantized to fp32."""
import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

import gguf_weights
from tiny_models import DATA

TEXTS = ["english", "code", "multilingual"]
TOKENS = 224
TOP = 64


def make_tokenizer(metadata: dict) -> Tokenizer:
    """The byte-level BPE of pre-tokenizer "smollm": digits one by one, then GPT-2's pattern."""
    assert metadata["tokenizer.ggml.pre"] == b"smollm"
    vocab = {token.decode(): index for index, token in enumerate(metadata["tokenizer.ggml.tokens"])}
    merges = [tuple(merge.decode().split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def make_model(metadata: dict, tensors: dict) -> LlamaForCausalLM:
    def key(name):
        return metadata["llama." + name]

    config = LlamaConfig(
        vocab_size=key("vocab_size"), hidden_size=key("embedding_length"), intermediate_size=key("feed_forward_length"),
        num_hidden_layers=key("block_count"), num_attention_heads=key("attention.head_count"),
        num_key_value_heads=key("attention.head_count_kv"), rms_norm_eps=key("attention.layer_norm_rms_epsilon"),
        rope_theta=key("rope.freq_base"), max_position_embeddings=key("context_length"),
        tie_word_embeddings="lm_head.weight" not in tensors, attn_implementation="eager", dtype=torch.float32)
    assert config.rope_parameters["rope_theta"] == key("rope.freq_base"), config.rope_parameters
    model = LlamaForCausalLM(config).to(torch.float32).eval()
    state = {name: torch.from_numpy(values) for name, values in tensors.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    return model


def log_probabilities(model: LlamaForCausalLM, ids: list) -> np.ndarray:
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].to(torch.float64)
    return torch.log_softmax(logits, dim=-1).numpy()


def arrays_of(name: str, ids: list, logprobs: np.ndarray) -> dict:
    """Per position: log-probability of the next token, the likeliest token, the TOP likeliest with their
    log-probabilities (fp16; readers normalize them anew), and the log of all others' mass."""
    top = np.argsort(-logprobs, axis=1, kind="stable")[:, :TOP]
    top_logprobs = np.take_along_axis(logprobs, top, axis=1)
    rest = logprobs.copy()
    np.put_along_axis(rest, top, -np.inf, axis=1)
    ordered = np.exp(top_logprobs[:, :2])
    margin = float((top_logprobs[:, 0] - top_logprobs[:, 1]).min())
    print(f"{name}: {len(ids)} tokens, mean log-probability {logprobs[range(len(ids) - 1), ids[1:]].mean():.4f}, "
          f"smallest margin of the likeliest {margin:.2e}, mean of its probability {ordered[:, 0].mean():.3f}")
    return {
        f"{name}.ids": np.array(ids, np.int32),
        f"{name}.logprobs": logprobs[range(len(ids) - 1), ids[1:]].astype(np.float32),
        f"{name}.argmax": top[:, 0].astype(np.int32),
        f"{name}.top_ids": top.astype(np.uint16).view(np.int16),
        f"{name}.top_logprobs": top_logprobs.astype(np.float16),
        f"{name}.rest_logprob": np.log(np.exp(rest).sum(axis=1)).astype(np.float32),
    }


def make(path: str) -> dict:
    metadata, tensors = gguf_weights.load(path)
    tokenizer = make_tokenizer(metadata)
    model = make_model(metadata, tensors)
    arrays = {}
    for name in TEXTS:
        text = (DATA / f"text_{name}.txt").read_text(encoding="utf-8")
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert len(ids) >= TOKENS and tokenizer.decode(ids, skip_special_tokens=False) == text, (name, len(ids))
        ids = ids[:TOKENS]
        arrays.update(arrays_of(name, ids, log_probabilities(model, ids)))
    return arrays
