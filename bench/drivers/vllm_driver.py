"""Times vLLM's engine, without a server, in its own process and environment: one line with a JSON object of tokens a second.

  vllm_driver.py HF_FOLDER KV_BYTES PREFILL STREAMS CONTEXT DECODE [NAME=VALUE of LLM(), as JSON]...
"""
import json
import sys
import time

from vllm import LLM, SamplingParams

AHEAD = 8  # tokens that the first streams may be ahead of the last ones to start


class Driver:
    def __init__(self, folder: str, kv_bytes: int, longest: int, streams: int, options: dict):
        self.engine = LLM(model=folder, dtype="bfloat16", max_num_seqs=streams, max_model_len=longest,
                          kv_cache_memory_bytes=kv_bytes, enable_prefix_caching=False, **options).llm_engine
        self.next_id = 0

    def submit(self, length: int, new_tokens: int) -> str:
        # Ids of any vocabulary, not all alike.
        ids = [100 + (i * 7919 + self.next_id * 104729) % 20000 for i in range(length)]
        self.next_id += 1
        self.engine.add_request(str(self.next_id), {"prompt_token_ids": ids},
                                SamplingParams(temperature=0, max_tokens=new_tokens, ignore_eos=True, detokenize=False))
        return str(self.next_id)

    def step(self, counts: dict) -> None:
        """Adds what the step brought: request -> tokens so far."""
        for output in self.engine.step():
            counts[output.request_id] = len(output.outputs[0].token_ids)

    def finish(self) -> None:
        while self.engine.has_unfinished_requests():
            self.engine.step()

    def prefill(self, length: int) -> float:
        counts: dict = {}
        start = time.perf_counter()
        self.submit(length, 1)
        while not counts:
            self.step(counts)
        seconds = time.perf_counter() - start
        self.finish()
        return length / seconds

    def decode(self, streams: int, context: int, tokens: int) -> float:
        """From the step after which all streams have a token on, for `tokens` more of each."""
        names = [self.submit(context, tokens + 2 + AHEAD) for _ in range(streams)]
        counts = dict.fromkeys(names, 0)
        start, at_start = 0.0, 0
        while self.engine.has_unfinished_requests():
            self.step(counts)
            if not start and min(counts.values()) > 0:
                start, at_start = time.perf_counter(), sum(counts.values())
            elif start and sum(counts.values()) - at_start >= streams * tokens:
                break
        if not start:
            raise SystemExit("vllm_driver.py: some stream brought no token")
        rate = (sum(counts.values()) - at_start) / (time.perf_counter() - start)
        self.finish()
        return rate


def main() -> None:
    folder, kv_bytes, prefill, streams, context, decode = sys.argv[1:7]
    options = {name: json.loads(value) for name, value in (word.split("=", 1) for word in sys.argv[7:])}
    counts = [int(count) for count in streams.split(",")]
    longest = max(int(prefill) + 1, int(context) + int(decode) + 2 + AHEAD)
    driver = Driver(folder, int(kv_bytes), longest, max(counts), options)
    driver.prefill(int(prefill))  # warms up
    rates = {f"prefill {prefill}": driver.prefill(int(prefill))}
    for count in counts:
        rates[f"decode {count}"] = driver.decode(count, int(context), int(decode))
    print("\n" + json.dumps(rates), flush=True)


if __name__ == "__main__":
    main()
