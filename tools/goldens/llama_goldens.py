"""Logits of the tiny Llamas by transformers, eager attention, fp32."""
import pathlib
import tempfile

import numpy as np
import torch
from transformers import AutoModelForCausalLM

import tiny_models

PROMPT_TOKENS = 45
# The first tokens, both sides of page ends, one past the rotary scaling's original length, and the last.
POSITIONS = [0, 1, 2, 9, 15, 16, 17, 31, 32, 33, 40, 44]


def logits_of(folder: pathlib.Path, ids: list) -> np.ndarray:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    model.eval()
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


def make() -> dict:
    """Name -> array: for each variant its ids, the positions kept, their logits, and the weights' checksum."""
    arrays = {}
    for variant in tiny_models.variants():
        name = variant["name"]
        ids = tiny_models.prompt_ids(variant, PROMPT_TOKENS)
        with tempfile.TemporaryDirectory() as folder:
            tiny_models.write_folder(variant, pathlib.Path(folder))
            logits = logits_of(pathlib.Path(folder), ids)[POSITIONS]
        deviation = float(logits.std())
        print(f"{name}: logits' standard deviation {deviation:.2f}")
        if deviation < 2:
            raise SystemExit(f"{name}: logits too flat to show a fault")
        checksum = tiny_models.checksum(tiny_models.make_tensors(variant))
        arrays[f"{name}.ids"] = np.array(ids, np.int32)
        arrays[f"{name}.positions"] = np.array(POSITIONS, np.int32)
        arrays[f"{name}.logits"] = logits.astype(np.float32)
        arrays[f"{name}.checksum"] = np.array([checksum], np.uint64).view(np.int64)
    return arrays
