"""The clock of `quire bench serve`, against a server that answers at known times, over http and https."""
import http.server
import json
import os
import ssl
import subprocess
import threading
import time

import pytest

from quire_server import QUIRE

TTFT_S, ITL_S, TOKENS = 0.3, 0.1, 5


class SlowServer(http.server.BaseHTTPRequestHandler):
    """Answers a completion with TOKENS events; "broken" in the model's name leaves out the end."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((body, dict(self.headers)))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for index in range(TOKENS):
            time.sleep(TTFT_S if index == 0 else ITL_S)
            self.chunk("data: " + json.dumps({"choices": [{"text": f" {index}"}]}) + "\r\n\r\n")
        if "broken" not in body["model"]:
            usage = {"prompt_tokens": len(body["prompt"]), "completion_tokens": TOKENS}
            self.chunk("data: " + json.dumps({"choices": [], "usage": usage}) + "\n\ndata: [DO")
            self.chunk("NE]\n\n")
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def chunk(self, text: str):
        self.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode())
        self.wfile.flush()

    def log_message(self, *_):
        pass


@pytest.fixture
def slow_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SlowServer)
    server.daemon_threads = True
    server.seen = []
    yield server
    server.shutdown()
    server.server_close()


def run(url, *words, env=None):
    done = subprocess.run([QUIRE, "bench", "serve", "--base-url", url, "--random-input-len", "3", "--random-output-len", "5",
                           "--quiet", "--save-result", "-", *words], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **(env or {})})
    return json.loads(done.stdout.splitlines()[-1]), done.returncode


def test_latencies_are_those_of_the_server(slow_server):
    threading.Thread(target=slow_server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{slow_server.server_port}/base/v1"
    result, code = run(url, "--num-prompts", "4", "--model", "m", "--api-key", "secret", "--ignore-eos")
    assert code == 0 and result["completed"] == 4 and result["total_output_tokens"] == 4 * TOKENS
    late_ms = 250  # what a busy machine may add
    for key, expected in (("p50_ttft_ms", TTFT_S), ("p50_itl_ms", ITL_S), ("p50_tpot_ms", ITL_S),
                          ("p50_e2el_ms", TTFT_S + (TOKENS - 1) * ITL_S)):
        assert expected * 1e3 - 2 <= result[key] <= expected * 1e3 + late_ms, (key, result[key])
    body, headers = slow_server.seen[0]
    assert len(body["prompt"]) == 3 and body["max_tokens"] == 5 and body["ignore_eos"] is True
    assert headers["Authorization"] == "Bearer secret" and headers["Host"] == f"127.0.0.1:{slow_server.server_port}"


def test_closed_loop_keeps_its_bound(slow_server):
    threading.Thread(target=slow_server.serve_forever, daemon=True).start()
    result, code = run(f"http://127.0.0.1:{slow_server.server_port}", "--num-prompts", "6", "--max-concurrency", "2", "--model",
                       "m")
    one = TTFT_S + (TOKENS - 1) * ITL_S
    assert code == 0 and result["duration"] >= 3 * one  # three turns of two
    assert result["p50_ttft_ms"] < 2 * TTFT_S * 1e3  # the clock starts when a request is sent


def test_a_stream_without_its_end_has_failed(slow_server):
    threading.Thread(target=slow_server.serve_forever, daemon=True).start()
    result, code = run(f"http://127.0.0.1:{slow_server.server_port}", "--num-prompts", "2", "--model", "broken")
    assert code == 1 and result["failed"] == 2 and result["errors"] == {"the stream ended before [DONE]": 2}


def test_https_is_verified(slow_server, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out",
                           certificate, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                          capture_output=True)
    if made.returncode != 0:
        pytest.skip("no openssl program to make a certificate with")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    slow_server.socket = context.wrap_socket(slow_server.socket, server_side=True)
    threading.Thread(target=slow_server.serve_forever, daemon=True).start()
    url = f"https://localhost:{slow_server.server_port}"
    result, code = run(url, "--num-prompts", "2", "--model", "m", env={"SSL_CERT_FILE": str(certificate)})
    assert code == 0 and result["completed"] == 2, result
    result, code = run(url, "--num-prompts", "1", "--model", "m")
    assert code == 1 and "certificate verify failed" in next(iter(result["errors"])), result
