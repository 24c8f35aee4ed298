"""Compares `quire tokenize` with HF tokenizers, id by id, on seeded texts."""
import pathlib
import shutil

import pytest
import zstandard
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

from gguf_metadata import read_metadata
from harness import Program, assert_same, encode_with
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
    """A tokenizer on both sides: HF's object and the program's."""

    def __init__(self, program: Program, reference: Tokenizer):
        self.program = program
        self.reference = reference
        self.added = [token.content for token in reference.get_added_tokens_decoder().values()]

    def compare(self, texts: list[str], **options):
        assert_same(texts, self.program.encode(texts, **options), encode_with(self.reference, texts, **options))


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
        return Case(Program(program, "--model", model), reference_from_gguf(model))
    folder = unpack(request, request.param, tmp_path_factory.mktemp(request.param))
    reference = Tokenizer.from_file(str(folder / "tokenizer.json"))
    # What the processor of transformers adds, the file of this one does not say.
    if request.param == "deepseek_v3":
        reference.post_processor = processors.TemplateProcessing(
            single="<｜begin▁of▁sentence｜> $A", special_tokens=[("<｜begin▁of▁sentence｜>", 0)])
    return Case(Program(program, "--tokenizer", str(folder)), reference)


@pytest.fixture(scope="session")
def texts(request, case, natural_lines) -> list[str]:
    tokens = case.added if len(case.added) <= 40 else case.added[:20] + case.added[-20:]
    return ["", *Samples(SEED, tokens, natural_lines).draw(request.config.getoption("--strings"))]


@pytest.mark.parametrize("add_special_tokens", [True, False])
def test_ids_equal_hf(case, texts, add_special_tokens):
    case.compare(texts, add_special_tokens=add_special_tokens)


def test_special_tokens_as_text(case, texts):
    case.compare(texts, parse_special=False)


@pytest.mark.parametrize("skip_special_tokens", [True, False])
def test_decoding_equals_hf(case, texts, skip_special_tokens):
    ids = encode_with(case.reference, texts, add_special_tokens=True)
    ids += [list(range(first, first + 64)) for first in range(0, case.reference.get_vocab_size() - 64, 997)]
    expected = case.reference.decode_batch(ids, skip_special_tokens=skip_special_tokens)
    assert_same(ids, case.program.decode(ids, skip_special_tokens), expected)


def test_long_runs(case):
    """One unbroken class: reference and program agree at sizes the reference can do."""
    runs = ["a", " ", "1", ".", "\n", " \n", "\t ", "日", "A", "a\u0301\u0323", "\u2003", "'"]
    case.compare([run * 5000 + tail for run in runs for tail in ("", "x")])
