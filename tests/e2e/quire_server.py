"""A quire server under test, started as a user would start it."""
import os
import pathlib
import socket
import subprocess
import time

import requests

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUIRE = os.environ.get("QUIRE", str(ROOT / "build/release/quire"))
MODEL = "smollm2:135m"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A quire server under test: `url`, `process`, and its metrics as numbers. A `with` block stops it."""

    def __init__(self, *options: str, env: dict | None = None):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        command = [QUIRE, "serve", "--host", "127.0.0.1", "--port", str(self.port), *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
        self.wait_ready()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def wait_ready(self, timeout_s: float = 60) -> None:
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            assert self.process.poll() is None, self.process.stderr.read()
            try:
                if requests.get(self.url + "/health", timeout=5).status_code == 200:
                    return
            except requests.ConnectionError:
                pass
            time.sleep(0.05)
        raise AssertionError("the server did not become ready")

    def metric(self, name: str, labels: str = "") -> float:
        """The sum of a metric's samples whose label text contains `labels`."""
        total = 0.0
        for line in requests.get(self.url + "/metrics", timeout=10).text.splitlines():
            if line.startswith((name + "{", name + " ")) and labels in line:
                total += float(line.rsplit(" ", 1)[1])
        return total

    def wait_idle(self, timeout_s: float = 30) -> None:
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            if self.metric("vllm:num_requests_running") == 0 and self.metric("vllm:num_requests_waiting") == 0:
                return
            time.sleep(0.05)
        raise AssertionError("the server did not become idle")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
