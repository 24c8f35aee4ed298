"""Times OpenVINO GenAI in its own process and environment: one JSON object of tokens a second on the last line.

  openvino_genai_driver.py MODEL.gguf THREADS PREFILL STREAMS CONTEXT DECODE
"""
import json
import sys
import time

import numpy
import openvino
import openvino_genai


class Driver:
    def __init__(self, model: str, threads: int, streams: int):
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.cache_size = 1  # GB
        scheduler.max_num_seqs = streams
        scheduler.max_num_batched_tokens = 2048
        scheduler.enable_prefix_caching = False
        self.pipeline = openvino_genai.ContinuousBatchingPipeline(model, scheduler, "CPU",
                                                                  {"INFERENCE_NUM_THREADS": threads})
        self.next_id = 0

    def submit(self, length: int, new_tokens: int):
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens = new_tokens
        config.ignore_eos = True
        config.do_sample = False
        # Ids of any vocabulary, not all alike.
        ids = [100 + (i * 7919 + self.next_id * 104729) % 20000 for i in range(length)]
        self.next_id += 1
        return self.pipeline.add_request(self.next_id, openvino.Tensor(numpy.array([ids], dtype=numpy.int64)), config)

    def finish(self) -> None:
        while self.pipeline.has_non_finished_requests():
            self.pipeline.step()

    def prefill(self, length: int) -> float:
        handle = self.submit(length, 1)
        start = time.perf_counter()
        while not handle.can_read():
            self.pipeline.step()
        seconds = time.perf_counter() - start
        self.finish()
        return length / seconds

    def decode(self, streams: int, context: int, tokens: int) -> float:
        """From the step after which all streams have a token on, for `tokens` more of each."""
        handles = [self.submit(context, tokens + 2 + streams * context // 1024) for _ in range(streams)]
        counts = [0] * streams
        start, at_start = 0.0, 0
        while self.pipeline.has_non_finished_requests():
            self.pipeline.step()
            for index, handle in enumerate(handles):
                while handle.can_read():
                    counts[index] += sum(len(output.generated_ids) for output in handle.read().values())
            if not start and min(counts) > 0:
                start, at_start = time.perf_counter(), sum(counts)
            elif start and sum(counts) - at_start >= streams * tokens:
                break
        rate = (sum(counts) - at_start) / (time.perf_counter() - start)
        self.finish()
        return rate


def main() -> None:
    model, threads, prefill, streams, context, decode = sys.argv[1:]
    counts = [int(count) for count in streams.split(",")]
    driver = Driver(model, int(threads), max(counts))
    driver.prefill(int(prefill))  # warms up
    rates = {f"prefill {prefill}": driver.prefill(int(prefill))}
    for count in counts:
        rates[f"decode {count}"] = driver.decode(count, int(context), int(decode))
    print(json.dumps(rates))


if __name__ == "__main__":
    main()
