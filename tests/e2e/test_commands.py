"""The commands beside `serve`, run as a user runs them."""
import json
import os
import pty
import re
import signal
import subprocess
import time

from quire_server import MODEL, QUIRE


def quire(*words, **options):
    return subprocess.run([QUIRE, *words], capture_output=True, text=True, timeout=180, **options)


def test_run_names_paris():
    done = quire("run", "The capital of France is", "--max-tokens", "8", "--temperature", "0")
    assert done.returncode == 0, done.stderr
    assert "Paris" in done.stdout
    assert "output tokens/s" in done.stderr


def test_run_takes_prompts_from_a_file_and_from_standard_input(tmp_path):
    prompts = ["The capital of France is", "The capital of Japan is", "Two plus two is"]
    file = tmp_path / "prompts.txt"
    file.write_text("\n".join(prompts) + "\n")
    common = ("--max-tokens", "6", "--temperature", "0", "--json", "--quiet")
    by_file = quire("run", "--file", str(file), *common)
    by_stdin = quire("run", *common, input="\n".join(prompts))
    by_words = quire("run", *prompts, *common)
    assert by_file.returncode == by_stdin.returncode == by_words.returncode == 0, by_file.stderr
    assert by_file.stdout == by_stdin.stdout == by_words.stdout
    assert [json.loads(line)["prompt"] for line in by_file.stdout.splitlines()] == prompts


def test_every_spelling_of_an_option():
    spellings = [("--max-model-len", "512"), ("--max_model_len", "512"), ("--max_model_len=512",), ("--max-model-len=512",)]
    shown = [quire("info", MODEL, "-tp", "1", *words).stdout for words in spellings]
    # How much memory is available differs from moment to moment.
    outputs = {re.sub(r"of \S+ \S+ available", "", text) for text in shown}
    assert len(outputs) == 1 and "512" in outputs.pop()


def test_info_counts_memory_without_loading():
    done = quire("info", MODEL)
    assert done.returncode == 0, done.stderr
    for word in ("weights", "packed copies", "kv cache", "arena", "other", "instruction set"):
        assert word in done.stdout.lower(), word


def test_unsupported_options_are_named():
    done = quire("info", MODEL, "-tp", "2")
    assert done.returncode == 1 and "--tensor-parallel-size" in done.stderr
    assert quire("serve", "--no-such-option").returncode == 2


def test_help_teaches():
    assert "Examples" in quire("--help").stdout
    assert "--max-num-batched-tokens" in quire("serve", "--help").stdout


def test_tokenize_and_render():
    lines = "\n".join(json.dumps({"text": t, "add_special_tokens": False}) for t in ("Hello world", "", "日本"))
    done = quire("tokenize", "--model", MODEL, input=lines + "\n")
    assert done.returncode == 0, done.stderr
    ids = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(ids) == 3 and ids[1] == [] and ids[0]
    request = {"messages": [{"role": "user", "content": "hi"}]}
    done = quire("render", "--model", MODEL, "--jsonl", input=json.dumps(request) + "\n")
    assert "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n" in json.loads(done.stdout)["text"]
    single = quire("render", "--model", MODEL, input=json.dumps(request))
    assert single.stdout == json.loads(done.stdout)["text"]


def test_chat_streams_and_ctrl_c_stops_only_the_answer():
    master, slave = pty.openpty()
    process = subprocess.Popen([QUIRE, "chat", "--quiet", "--temperature", "0", "--max-tokens", "2000", "--ignore-eos"],
                               stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    os.set_blocking(master, False)

    def read_for(seconds):
        text, end = b"", time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                text += os.read(master, 65536)
            except BlockingIOError:
                time.sleep(0.02)
        return text.decode("utf-8", "replace")

    assert "> " in read_for(3)
    os.write(master, b"Tell me a long story.\n")
    assert len(read_for(1)) > 40
    process.send_signal(signal.SIGINT)
    read_for(1)
    assert read_for(0.5) == ""  # the answer has stopped
    assert process.poll() is None  # the program has not
    os.write(master, b"/exit\n")
    process.wait(10)
    os.close(master)
