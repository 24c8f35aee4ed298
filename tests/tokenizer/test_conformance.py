"""Compares `quire tokenize` with HF tokenizers, id by id, on seeded texts."""
import json
import pathlib
import shutil
import subprocess

import pytest
import zstandard
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from gguf_metadata import read_metadata
from text_samples import Samples

SEED = 20240607
HF_NAMES = ["gpt2", "llama3", "qwen2_5", "mistral_nemo", "deepseek_v3"]
CONTROL, USER_DEFINED = 3, 4


def reference_from_gguf(path: str) -> Tokenizer:
    """The tokenizer that SmolLM2's own tokenizer.json describes, from the GGUF's vocabulary."""
    data = read_metadata(path)
    assert data["tokenizer.ggml.pre"] == "smollm"
    tokens = data["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in data["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    types = data["tokenizer.ggml.token_type"]
    special = [AddedToken(t, special=True, normalized=False) for t, kind in zip(tokens, types) if kind == CONTROL]
    tokenizer.add_special_tokens(special)
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t, kind in zip(tokens, types) if kind == USER_DEFINED])
    return tokenizer


class Case:
    """A tokenizer on both sides: HF's object and the program's arguments."""

    def __init__(self, program: str, arguments: list[str], reference: Tokenizer):
        self.command = [program, "tokenize", *arguments]
        self.reference = reference
        # Decoding through the class of transformers also cleans up; the library itself does not.
        self.added = [token.content for token in reference.get_added_tokens_decoder().values()]

    def run(self, requests: list[dict]) -> list:
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        done = subprocess.run(self.command, input=lines.encode(), capture_output=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr.decode()
        answers = [json.loads(line) for line in done.stdout.splitlines()]  # of bytes: at newlines only
        assert len(answers) == len(requests)
        return answers


@pytest.fixture(scope="session")
def natural_lines(request) -> list[str]:
    path = pathlib.Path(request.config.getoption("--shared")) / "data/wikitext2-valid.txt"
    return [line for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


def unpack(request, name: str, folder: pathlib.Path) -> pathlib.Path:
    source = pathlib.Path(request.config.getoption("--shared")) / "data/tokenizers" / name
    if not source.exists():
        pytest.skip(f"{source} is not there")
    with open(source / "tokenizer.json.zst", "rb") as packed, open(folder / "tokenizer.json", "wb") as plain:
        zstandard.ZstdDecompressor().copy_stream(packed, plain)
    shutil.copy(source / "tokenizer_config.json", folder)
    return folder


@pytest.fixture(scope="session", params=["default", *HF_NAMES])
def case(request, tmp_path_factory) -> Case:
    program = request.config.getoption("--quire")
    if not pathlib.Path(program).exists():
        pytest.skip(f"{program} is not built")
    if request.param == "default":
        model = request.config.getoption("--model")
        if not model:
            pytest.skip("needs --model FILE, the default model's GGUF")
        return Case(program, ["--model", model], reference_from_gguf(model))
    folder = unpack(request, request.param, tmp_path_factory.mktemp(request.param))
    reference = Tokenizer.from_file(str(folder / "tokenizer.json"))
    # What the processor of transformers adds, the file of this one does not say.
    if request.param == "deepseek_v3":
        from tokenizers import processors
        reference.post_processor = processors.TemplateProcessing(
            single="<｜begin▁of▁sentence｜> $A", special_tokens=[("<｜begin▁of▁sentence｜>", 0)])
    return Case(program, ["--tokenizer", str(folder)], reference)


@pytest.fixture(scope="session")
def texts(request, case, natural_lines) -> list[str]:
    tokens = case.added if len(case.added) <= 40 else case.added[:20] + case.added[-20:]
    return ["", *Samples(SEED, tokens, natural_lines).draw(request.config.getoption("--strings"))]


def assert_same(texts, ours, expected):
    wrong = [(t, o, e) for t, o, e in zip(texts, ours, expected) if o != e]
    shown = "\n".join(f"{ascii(t)}\n  ours {o}\n  HF   {e}" for t, o, e in wrong[:3])
    assert not wrong, f"{len(wrong)} of {len(texts)} differ:\n{shown}"


@pytest.mark.parametrize("add_special_tokens", [True, False])
def test_ids_equal_hf(case, texts, add_special_tokens):
    ours = case.run([{"text": t, "add_special_tokens": add_special_tokens} for t in texts])
    expected = [e.ids for e in case.reference.encode_batch_fast(texts, add_special_tokens=add_special_tokens)]
    assert_same(texts, ours, expected)


def test_special_tokens_as_text(case, texts):
    ours = case.run([{"text": t, "add_special_tokens": False, "parse_special": False} for t in texts])
    case.reference.encode_special_tokens = True
    try:
        expected = [e.ids for e in case.reference.encode_batch_fast(texts, add_special_tokens=False)]
    finally:
        case.reference.encode_special_tokens = False
    assert_same(texts, ours, expected)


@pytest.mark.parametrize("skip_special_tokens", [True, False])
def test_decoding_equals_hf(case, texts, skip_special_tokens):
    ids = [e.ids for e in case.reference.encode_batch_fast(texts)]
    ids += [list(range(first, first + 64)) for first in range(0, case.reference.get_vocab_size() - 64, 997)]
    ours = case.run([{"ids": i, "skip_special_tokens": skip_special_tokens} for i in ids])
    expected = case.reference.decode_batch(ids, skip_special_tokens=skip_special_tokens)
    assert_same(ids, ours, expected)


def test_every_code_point(case):
    """Each code point with the neighbours that rules look at; this is where Unicode versions show."""
    points = [chr(p) for p in range(0x30000) if not 0xD800 <= p < 0xE000]
    texts = [f"a{p} {p}1{p}{p}.{p}\n" for p in points]
    ours = case.run([{"text": t, "add_special_tokens": False} for t in texts])
    expected = [e.ids for e in case.reference.encode_batch_fast(texts, add_special_tokens=False)]
    assert_same(texts, ours, expected)


def test_long_runs(case):
    """One unbroken class: reference and program agree at sizes the reference can do."""
    runs = ["a", " ", "1", ".", "\n", " \n", "\t ", "日", "A", "a\u0301\u0323", "\u2003", "'"]
    texts = [run * 5000 + tail for run in runs for tail in ("", "x")]
    ours = case.run([{"text": t, "add_special_tokens": False} for t in texts])
    expected = [e.ids for e in case.reference.encode_batch_fast(texts, add_special_tokens=False)]
    assert_same([t[:20] for t in texts], ours, expected)
