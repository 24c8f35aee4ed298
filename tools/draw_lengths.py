#!/usr/bin/env python3
"""Draws quire/bench/data/sharegpt_like_lengths.jsonl: 2,000 pairs of prompt and output lengths. Run again, it writes the same file.

The pairs are drawn, not recorded. What is published: the mean lengths of ShareGPT in the PagedAttention paper (Kwon et al., "Efficient
Memory Management for Large Language Model Serving with PagedAttention", SOSP 2023, section 6.1, figure 11): 161.31 tokens of prompt and
337.99 of output, at most 2,048 together; its histograms are skewed, with a long tail. What is assumed here: log-normal shapes (the
sigmas below), independence of prompt and output, and a cut at 1,024 tokens each. The location of each distribution is solved for, so
that the rounded and cut lengths have the published means. Stratified quantiles, then a seeded shuffle: no luck of the draw in the tail.
"""
import json
import math
import pathlib
import random
import statistics

PAIRS = 2000
SEED = 2023
SHORTEST, LONGEST = 4, 1024
PROMPT_MEAN, PROMPT_SIGMA = 161.31, 1.3
OUTPUT_MEAN, OUTPUT_SIGMA = 337.99, 1.0
TARGET = pathlib.Path(__file__).resolve().parent.parent / "quire/bench/data/sharegpt_like_lengths.jsonl"


def lengths(mu: float, sigma: float) -> list[int]:
    """The PAIRS mid-quantiles of a log-normal distribution, rounded and cut."""
    normal = statistics.NormalDist()
    quantiles = (math.exp(mu + sigma * normal.inv_cdf((i + 0.5) / PAIRS)) for i in range(PAIRS))
    return [min(max(round(value), SHORTEST), LONGEST) for value in quantiles]


def lengths_of_mean(mean: float, sigma: float) -> list[int]:
    low, high = 0.0, math.log(LONGEST) + 3
    for _ in range(60):
        middle = (low + high) / 2
        if statistics.fmean(lengths(middle, sigma)) < mean:
            low = middle
        else:
            high = middle
    return lengths(high, sigma)


def main() -> None:
    rng = random.Random(SEED)
    prompts = lengths_of_mean(PROMPT_MEAN, PROMPT_SIGMA)
    outputs = lengths_of_mean(OUTPUT_MEAN, OUTPUT_SIGMA)
    rng.shuffle(prompts)
    rng.shuffle(outputs)
    lines = [json.dumps({"input_len": p, "output_len": o}, separators=(",", ":")) for p, o in zip(prompts, outputs)]
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text("\n".join(lines) + "\n")
    print(f"{TARGET}: {PAIRS} pairs, means {statistics.fmean(prompts):.2f} and {statistics.fmean(outputs):.2f}, "
          f"medians {statistics.median(prompts)} and {statistics.median(outputs)}")


if __name__ == "__main__":
    main()
