"""GGUF's block formats, from their published definitions: blocks of bytes to fp32, and random blocks.

A scale times a code is exact in fp32, also where the scale is itself the product of an fp16 number and a small integer;
a minimum, likewise exact, is subtracted or added with one rounding. So numpy's fp32 arithmetic gives the one right answer.
"""
import numpy as np

# name: (GGUF's number, elements of a block, bytes of a block, offsets of its fp16 numbers)
FORMATS = {
    "Q4_0": (2, 32, 18, (0,)), "Q4_1": (3, 32, 20, (0, 2)), "Q5_0": (6, 32, 22, (0,)), "Q5_1": (7, 32, 24, (0, 2)),
    "Q8_0": (8, 32, 34, (0,)), "Q2_K": (10, 256, 84, (80, 82)), "Q3_K": (11, 256, 110, (108,)),
    "Q4_K": (12, 256, 144, (0, 2)), "Q5_K": (13, 256, 176, (0, 2)), "Q6_K": (14, 256, 210, (208,)),
}


def half(blocks: np.ndarray, at: int) -> np.ndarray:
    """The fp16 number at byte `at` of each block: [blocks, 1] fp32."""
    return blocks[:, at:at + 2].copy().view(np.float16).astype(np.float32)


def nibbles(packed: np.ndarray) -> np.ndarray:
    """[blocks, n] bytes to [blocks, 2n] codes: all low halves, then all high ones."""
    return np.concatenate([packed & 15, packed >> 4], axis=1)


def fifth_bits(packed: np.ndarray) -> np.ndarray:
    """[blocks, 4] bytes to [blocks, 32] bits, the lowest first."""
    return np.unpackbits(packed, axis=1, bitorder="little")


def two_bits(packed: np.ndarray) -> np.ndarray:
    """[blocks, 64] bytes to [blocks, 256] codes: per 32 bytes, bits 0-1 of all, then bits 2-3, 4-5, 6-7."""
    shifts = np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)
    return (packed.reshape(-1, 2, 1, 32) >> shifts & 3).reshape(-1, 256)


def scales_and_minimums(packed: np.ndarray) -> tuple:
    """The 12 bytes of Q4_K and Q5_K: eight 6-bit scales and eight 6-bit minimums."""
    scales, minimums = np.empty((2, len(packed), 8), np.uint8)
    for group in range(8):
        if group < 4:
            scales[:, group] = packed[:, group] & 63
            minimums[:, group] = packed[:, group + 4] & 63
        else:
            scales[:, group] = packed[:, group + 4] & 15 | packed[:, group - 4] >> 6 << 4
            minimums[:, group] = packed[:, group + 4] >> 4 | packed[:, group] >> 6 << 4
    return scales, minimums


def scaled(codes: np.ndarray, scales: np.ndarray, minimums=None) -> np.ndarray:
    """codes [blocks, n]; scales and minimums [blocks, groups] fp32, minimums to subtract."""
    by_group = codes.astype(np.float32).reshape(*scales.shape, -1)
    values = scales[:, :, None] * by_group
    if minimums is not None:
        values = values - minimums[:, :, None]
    return values.reshape(len(codes), -1)


def q4_0(b):
    return half(b, 0) * (nibbles(b[:, 2:]).astype(np.float32) - 8)


def q4_1(b):
    return half(b, 0) * nibbles(b[:, 4:]).astype(np.float32) + half(b, 2)


def q5_0(b):
    codes = nibbles(b[:, 6:]) | fifth_bits(b[:, 2:6]) << 4
    return half(b, 0) * (codes.astype(np.float32) - 16)


def q5_1(b):
    codes = nibbles(b[:, 8:]) | fifth_bits(b[:, 4:8]) << 4
    return half(b, 0) * codes.astype(np.float32) + half(b, 2)


def q8_0(b):
    return half(b, 0) * b[:, 2:].view(np.int8).astype(np.float32)


def q2_k(b):
    scales, minimums = (b[:, :16] & 15).astype(np.float32), (b[:, :16] >> 4).astype(np.float32)
    return scaled(two_bits(b[:, 16:80]), half(b, 80) * scales, half(b, 82) * minimums)


def q3_k(b):
    bits = np.unpackbits(b[:, :32, None], axis=2, bitorder="little")  # [blocks, 32, 8]
    third = bits.transpose(0, 2, 1).reshape(-1, 256)
    codes = (two_bits(b[:, 32:96]) | third << 2).astype(np.int8) - 4
    low = nibbles(b[:, 96:104])
    top = np.stack([b[:, 104 + k % 4] >> 2 * (k // 4) & 3 for k in range(16)], axis=1)
    scales = (low | top << 4).astype(np.float32) - 32
    return scaled(codes, half(b, 108) * scales)


def q4_k(b):
    scales, minimums = scales_and_minimums(b[:, 4:16])
    codes = np.stack([b[:, 16:].reshape(-1, 4, 32) & 15, b[:, 16:].reshape(-1, 4, 32) >> 4], axis=2)
    return scaled(codes.reshape(-1, 256), half(b, 0) * scales.astype(np.float32), half(b, 2) * minimums.astype(np.float32))


def q5_k(b):
    scales, minimums = scales_and_minimums(b[:, 4:16])
    low = np.stack([b[:, 48:].reshape(-1, 4, 32) & 15, b[:, 48:].reshape(-1, 4, 32) >> 4], axis=2).reshape(-1, 256)
    bits = np.unpackbits(b[:, 16:48, None], axis=2, bitorder="little")  # [blocks, 32, 8]
    codes = low | bits.transpose(0, 2, 1).reshape(-1, 256) << 4
    return scaled(codes, half(b, 0) * scales.astype(np.float32), half(b, 2) * minimums.astype(np.float32))


def q6_k(b):
    codes = np.empty((len(b), 256), np.int8)
    for h in range(2):
        for k in range(4):
            packed = b[:, 64 * h + 32 * (k & 1):][:, :32]
            low = packed & 15 if k < 2 else packed >> 4
            top = b[:, 128 + 32 * h:][:, :32] >> 2 * k & 3
            codes[:, 128 * h + 32 * k:][:, :32] = (low | top << 4).astype(np.int8) - 32
    return scaled(codes, half(b, 208) * b[:, 192:208].view(np.int8).astype(np.float32))


DECODERS = {"Q4_0": q4_0, "Q4_1": q4_1, "Q5_0": q5_0, "Q5_1": q5_1, "Q8_0": q8_0,
            "Q2_K": q2_k, "Q3_K": q3_k, "Q4_K": q4_k, "Q5_K": q5_k, "Q6_K": q6_k}


def dequantize(name: str, raw: np.ndarray) -> np.ndarray:
    """fp32 values, flat, of `raw` bytes of format `name`."""
    return DECODERS[name](raw.reshape(-1, FORMATS[name][2])).reshape(-1)


def random_blocks(name: str, count: int, random: np.random.Generator) -> np.ndarray:
    """[count, bytes of a block]: any codes; fp16 numbers finite, of both signs and all sizes."""
    _, _, size, halves = FORMATS[name]
    blocks = random.integers(0, 256, (count, size), np.uint8)
    for at in halves:
        bits = random.integers(0, 1 << 16, count).astype(np.uint16) & 0xfbff  # no infinity, no NaN
        blocks[:, at:at + 2] = bits[:, None].view(np.uint8)
    return blocks


def tame_block(name: str, random: np.random.Generator) -> np.ndarray:
    """One block whose fp16 numbers are 1 and in which every bit counts: no scale that is 0 hides codes."""
    _, _, size, halves = FORMATS[name]
    while True:
        block = random.integers(0, 256, (1, size), np.uint8)
        for at in halves:
            block[:, at:at + 2] = (0, 0x3c)
        flipped = (block ^ np.eye(1, size, i, np.uint8) << np.uint8(bit) for i in range(size) for bit in range(8))
        whole = dequantize(name, block)
        with np.errstate(invalid="ignore"):  # an infinite scale times 0
            if all((dequantize(name, other) != whole).any() for other in flipped):
                return block


def make() -> dict:
    """Three rows a format: {"Q4_K.blocks": uint8 [rows, bytes of a row], "Q4_K.values": fp32 [rows, inputs], ...}; and
    "Q4_K.tame": uint8, a tame block.
    """
    random = np.random.default_rng(20)
    arrays = {}
    for name, (_, elements, _, _) in FORMATS.items():
        blocks = random_blocks(name, 3 * (2 if elements == 256 else 3), random)
        arrays[name + ".blocks"] = blocks.reshape(3, -1)
        arrays[name + ".values"] = dequantize(name, blocks).reshape(3, -1)
        arrays[name + ".tame"] = tame_block(name, random)
    return arrays
