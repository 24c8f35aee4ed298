"""The command under test and the data, given on pytest's command line."""
import pathlib


def pytest_addoption(parser):
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.addoption("--quire", default=str(root / "build/release/quire"), help="the program under test")
    parser.addoption("--model", default="", help="the GGUF file of the default model; without it its tests skip")
    parser.addoption("--shared", default=str(root.parent / "shared"), help="the folder with data/tokenizers")
    parser.addoption("--strings", type=int, default=10000, help="texts for each tokenizer")
