"""The servers that are compared over HTTP: one file a server.

Each file has a class with
  name: str                                               as tables show it
  check(model: pathlib.Path) -> str                       empty, or why it cannot serve this file
  start(model: pathlib.Path, Room, log) -> ServerProcess  says that it is healthy within START_S, or raises EngineError
"""
import dataclasses
import http.client
import os
import pathlib
import signal
import socket
import subprocess
import time

from peers import EngineError

from . import resident

START_S = 900  # engines that compile a model at start take minutes


@dataclasses.dataclass(frozen=True)
class Room:
    threads: int
    streams: int  # at once
    context: int  # tokens of a stream, prompt and output together

    def tokens(self) -> int:
        return self.streams * self.context


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class ServerProcess:
    """A server on `port` with all its processes, which end with the `with` block. Output goes to the file `log`."""

    def __init__(self, command: list, port: int, log: pathlib.Path, environment: dict | None = None):
        self.port, self.log = port, log
        begin = time.perf_counter()
        with log.open("wb") as out:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            start_new_session=True, env=os.environ | (environment or {}))
        try:
            self.wait_healthy(begin + START_S)
        except BaseException:
            self.stop()
            raise
        self.start_s = time.perf_counter() - begin

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path)
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def wait_healthy(self, deadline: float) -> None:
        while time.perf_counter() < deadline:
            if self.process.poll() is not None:
                raise EngineError(f"the server ended with {self.process.returncode}: {self.last_words()}")
            try:
                if self.get("/health")[0] == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.05)
        raise EngineError(f"not healthy after {START_S} s: {self.last_words()}")

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return f"{' / '.join(lines[-3:])[-400:]} (all of it: {self.log})"

    def resident(self) -> dict:
        return resident.of_tree(self.process.pid)

    def stop(self) -> None:
        """Asks it to end, and after a minute ends it; then ends what it left of its process group."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
