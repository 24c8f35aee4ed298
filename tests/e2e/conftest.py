"""One server for the tests of a session."""
import pytest

from quire_server import MODEL, Server


@pytest.fixture(scope="session")
def server():
    running = Server("--model", MODEL, "--dtype", "bfloat16", "--max-model-len", "8192",
                     "--gpu-memory-utilization", "0.90")
    yield running
    running.stop()
