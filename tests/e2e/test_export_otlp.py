# SPDX-License-Identifier: Apache-2.0
"""`plumb export --format otlp`: decoded by OpenTelemetry's own definitions, read back by plumb with the same totals,
and posted: to a server here that looks at what comes, and to OpenTelemetry's Collector where there is one."""
import collections
import ctypes
import http.server
import json
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time

import pytest
from conftest import PLUMB, run_command
from importing import imported, report, shared
from plumbtest import PROGRAMS, export, run_program
from test_export import RECORDED, reader, samples  # noqa: F401 (a fixture)
from test_import_jaeger import document, fates, paths, span, xsp
from test_mock_gpu import NEWEST, mock_environment

import plumb as plumb_package


def decoded(path):
    reader("venv/otlp")
    done = run_command(reader("venv/bin/python"), PROGRAMS / "read_otlp.py", path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def sound(spans):
    """Ids are there once, and parents are there, and of host spans include them. {id: span}"""
    found = {item["id"]: item for item in spans}
    assert len(found) == len(spans) and len({item["trace"] for item in spans}) == 1
    for item in spans:
        assert item["kind"] == 1 and item["start"] <= item["end"]
        parent = item["parent"] and found[item["parent"]]
        assert set(item["links"]) <= set(found)
        if parent and "thread.id" in item["attributes"]:
            assert parent["start"] <= item["start"] and parent["end"] >= item["end"]
    for item in spans:  # one root for each process, around all of its spans
        root = item
        while root["parent"]:
            root = found[root["parent"]]
        assert root["attributes"]["plumb.kind"] == "process" and root["resource"] == item["resource"]
    roots = [item for item in spans if not item["parent"]]
    assert len(roots) == len({json.dumps(item["resource"], sort_keys=True) for item in spans})
    return found


def work_of(spans):
    """The spans without the roots of processes."""
    return [item for item in spans if item["parent"]]


def test_the_sample(samples, tmp_path):  # noqa: F811
    spans = decoded(export(samples / "trace.plumb", tmp_path / "out.otlp.json"))
    found = sound(spans)
    spans = work_of(spans)
    offset = 1700000000000000000
    assert sorted((item["name"], item["start"] - offset, item["end"] - offset,
                   found[item["parent"]]["parent"] and found[item["parent"]]["name"]) for item in spans) == [
        ("AddmmBackward0", 4000, 4800, None), ("aten::addmm", 2100, 2800, "aten::linear"),
        ("aten::addmm", 3100, 3800, "aten::linear"), ("aten::linear", 2000, 2900, None),
        ("aten::linear", 3000, 3900, None), ("copy pinned", 5000, 5500, None),
        ("cuLaunchKernel", 2200, 2400, "aten::addmm"), ("cuLaunchKernel", 2500, 2600, "aten::addmm"),
        ("cuLaunchKernel", 3200, 3400, "aten::addmm"), ("gemm", 2300, 3400, "cuLaunchKernel"),
        ("gemm", 3300, 4400, "cuLaunchKernel")]
    kernel = next(item for item in spans if item["name"] == "gemm")
    assert kernel["links"] == [kernel["parent"]]
    assert kernel["attributes"]["plumb.kind"] == "kernel"
    assert kernel["attributes"]["gpu.device.ordinal"] == 0
    assert kernel["attributes"]["gpu.stream"] == 7
    assert kernel["attributes"]["code.file.path"].endswith("linear.py")
    back = next(item for item in spans if item["name"] == "AddmmBackward0")
    assert back["attributes"]["plumb.pass"] == "backward"
    again = export(samples / "trace.plumb", tmp_path / "again.otlp.json")
    assert again.read_bytes() == (tmp_path / "out.otlp.json").read_bytes()


def test_each_process_has_a_root(samples, tmp_path):  # noqa: F811
    """Without a reader of somebody else: the JSON itself, and plumb's own, which takes it for no work."""
    path = export(samples / "trace.plumb", tmp_path / "out.otlp.json")
    spans = [span for resource in json.loads(path.read_text())["resourceSpans"]
             for scope in resource["scopeSpans"] for span in scope["spans"]]
    roots = [span for span in spans if "parentSpanId" not in span]
    with plumb_package.Profile(samples / "trace.plumb") as profile:
        assert len(roots) == len(profile.processes) and len(spans) == len(roots) + len(list(profile.spans()))
    for root in roots:
        assert root["attributes"] == [{"key": "plumb.kind", "value": {"stringValue": "process"}}]
        assert int(root["startTimeUnixNano"]) <= min(int(span["startTimeUnixNano"]) for span in spans)
        assert int(root["endTimeUnixNano"]) >= max(int(span["endTimeUnixNano"]) for span in spans)
    assert len({span["spanId"] for span in spans}) == len(spans)
    assert {span.get("parentSpanId") for span in spans} - {None} <= {span["spanId"] for span in spans}
    back = read_back(path, tmp_path)
    assert fates(back) == {} and paths(back, "op.time")


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    made = run_program(sys.executable, "mock_gpu.py", folder=tmp_path_factory.mktemp("traced"),
                       options=["--trace"], environment=mock_environment(NEWEST))
    assert made.done.returncode == 0, made.done.stderr
    return made


def test_a_traced_run(traced, tmp_path):
    spans = decoded(export(traced.path, tmp_path / "out.otlp.json"))
    found = sound(spans)
    spans = work_of(spans)
    profile = traced.profile
    expected = collections.Counter((profile.node(one.context).symbol, one.end_ns - one.start_ns)
                                   for one in profile.spans())
    assert {name for name, _ in expected} == {item["name"] for item in spans}
    assert len(spans) == sum(expected.values())
    assert abs(min(item["start"] for item in spans) / 1e9 - time.time()) < 3600
    process, = profile.processes
    assert all(item["resource"]["process.pid"] == process.pid for item in spans)
    for item in spans:  # all work of a trace hangs under its call
        if item["attributes"]["plumb.kind"] in ("kernel", "copy", "set"):
            assert found[item["parent"]]["attributes"]["plumb.kind"] == "gpu_api"
            assert item["links"] == [item["parent"]]


def devices(path):
    keys = ("ordinal", "name", "uuid", "kernels", "copies", "sets", "busy_ns", "idle_ns", "span_ns")
    return [{key: device[key] for key in keys} for device in report(path)["devices"]]


def read_back(path, tmp_path, name="back"):
    out = tmp_path / f"{name}.plumb"
    done = run_command(PLUMB, "import", path, "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    return out


def test_read_back(traced, samples, tmp_path):  # noqa: F811
    """GPU work, with its bytes and shapes; of the host what spans have, which are operators and calls."""
    back = read_back(export(traced.path, tmp_path / "out.otlp.json"), tmp_path)
    assert devices(back) == devices(traced.path) and devices(back)[0]["kernels"]["count"] > 0
    assert fates(back) == {}
    kernels = collections.Counter()
    for path in traced.path, back:
        with plumb_package.Profile(path) as profile:
            one = collections.Counter()
            for node in profile.kernels:
                one[node.symbol, node.parent.symbol] += node.exclusive["gpu.time"].sum
        kernels = kernels or one
        assert one == kernels
    for path in traced.path, back:
        with plumb_package.Profile(path) as profile:
            shapes = {(tuple(v.grid), tuple(v.block)) for n in profile.kernels for v in n.variants}
        assert shapes
    third = read_back(export(back, tmp_path / "two.otlp.json"), tmp_path, "third")
    assert devices(third) == devices(back)
    assert paths(third, "gpu.time") == paths(back, "gpu.time")
    assert paths(third, "op.time") == paths(back, "op.time")


@pytest.mark.parametrize("name", ["k12_alexnet_cuda_sync", "k20_h100_qwen1.5",
                                  "k28_mi_sglang_qwen3_decode_hipgraph"])
def test_real_traces_read_back(name, tmp_path):
    first = read_back(shared(f"kineto/{name}.json.gz"), tmp_path, "first")
    back = read_back(export(first, tmp_path / "out.otlp.json"), tmp_path)
    assert devices(back) == devices(first)
    assert report(back)["total"] == report(first)["total"]

    def work(path):
        return {(row["source"], row["received"], row["attributed"]) for row in report(path)["ledger"]
                if row["source"].startswith("gpu.") and row["source"] != "gpu.sync"}  # who waited is no span
    assert work(back) == work(first)


def test_xsp_and_back(tmp_path):
    """Spans on no known thread, whose parents lie on other tracks, keep them."""
    made = imported(tmp_path, document(xsp()))
    back = read_back(export(made, tmp_path / "out.otlp.json"), tmp_path)
    for metric in "gpu.time", "op.time", "gpu.launches", "host.wait":
        assert paths(back, metric) == paths(made, metric), metric
    assert devices(back) == devices(made)


def test_no_spans(samples, tmp_path):  # noqa: F811
    for profile in samples / "gpu.plumb", RECORDED:
        done = run_command(PLUMB, "export", profile, "-o", tmp_path / "out.otlp.json")
        assert done.returncode == 3 and "plumb run --trace" in done.stderr
        assert done.stderr.count("\n") == 1 and list(tmp_path.iterdir()) == []


def test_before_1970(tmp_path):
    made = imported(tmp_path, document([span(1, "old", -5, 2)]))
    done = run_command(PLUMB, "export", made, "-F", "otlp")
    assert done.returncode == 2 and "before 1970" in done.stderr


# ---- sending ----

class Collector(http.server.ThreadingHTTPServer):
    """Keeps what is posted, and answers with the next of `answers` (200 when there is none left)."""
    daemon_threads = True

    def __init__(self, *answers):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.requests = list(answers), []
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, dict(self.headers), body))
        status, text, chunked = self.server.answers.pop(0) if self.server.answers else (200, "{}", False)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in text[:7], text[7:]:
                self.wfile.write(f"{len(part):x}\r\n{part}\r\n".encode())
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """9000 spans: three requests."""
    folder = tmp_path_factory.mktemp("many")
    spans = [span(1, "all", 1, 9000, "MODEL")]
    spans += [span(i, f"f{i % 7}", i, 1, "FRAMEWORK") for i in range(2, 9001)]
    return imported(folder, document(spans))


def send(profile, url):
    return run_command(PLUMB, "export", profile, "--endpoint", url)


def test_sending(many, tmp_path):
    with Collector() as collector:
        done = send(many, collector.url)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert [path for path, _, _ in collector.requests] == ["/v1/traces"] * 3
        for _, headers, body in collector.requests:
            assert headers["Content-Type"] == "application/json"
            assert headers["Host"] == collector.url[len("http://"):]
            assert int(headers["Content-Length"]) == len(body) < 4 << 20
        sent = tmp_path / "sent.json"
        sent.write_bytes(b"".join(body for _, _, body in collector.requests))
        assert sent.read_bytes().count(b"\n") == 3
        back = read_back(sent, tmp_path)
        assert paths(back, "op.time") == paths(many, "op.time")
        done = send(many, collector.url + "/own/path")
        assert done.returncode == 0 and collector.requests[-1][0] == "/own/path"
        done = send(many, collector.url.replace("127.0.0.1", "localhost") + "/")
        assert done.returncode == 0 and collector.requests[-1][0] == "/v1/traces"
    whole = export(many, tmp_path / "whole.otlp.json")
    assert paths(read_back(whole, tmp_path, "whole"), "op.time") == paths(back, "op.time")


@pytest.mark.parametrize("answers, said", [
    ([(400, '{"code":3,"message":"no \\"such\\" thing"}', False)], ': no "such" thing'),
    ([(503, "overloaded", False)], "answers 503 Service Unavailable"),
    ([(404, "", False)], "answers 404 Not Found"),
    ([(200, "{}", False), (413, "{}", False)], "413 Request Entity Too Large (the collector took the 4000 spans before"),
    ([(200, '{"partialSuccess":{"rejectedSpans":"12","errorMessage":"too old"}}', False)],
     "rejected 12 of 4000 spans: too old"),
    ([(200, '{"partialSuccess":{"rejectedSpans":3}}', True)], "rejected 3 of 4000 spans"),
    ([(301, "", False)], "answers 301"),
])
def test_refused(answers, said, many):
    with Collector(*answers) as collector:
        done = send(many, collector.url)
        assert done.returncode == 5 and said in done.stderr, done.stderr
        assert done.stderr.startswith("plumb: ") and done.stderr.count("\n") == 1
        assert len(collector.requests) == len(answers)


@pytest.mark.parametrize("answer", ['{"partialSuccess":{}}', '{"partialSuccess":{"rejectedSpans":0,'
                                    '"errorMessage":"please use gRPC"}}', "", "not JSON", "[1]", '{"a"'])
def test_taken(answer, many):
    with Collector((200, answer, False)) as collector:
        done = send(many, collector.url)
        assert (done.returncode, done.stderr) == (0, "")
        assert len(collector.requests) == 3


@pytest.mark.parametrize("greeting", [b"\x00\x00\x12\x04\x00", b"hello\r\n\r\n", b""])
def test_not_http(greeting, many):
    """As a gRPC server, or something else, would answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        def serve():
            peer, _ = server.accept()
            with peer:
                peer.sendall(greeting)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(65536):
                    pass
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        done = send(many, f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join(10)
    assert done.returncode == 5 and done.stderr.count("\n") == 1
    assert ("the answer is not HTTP" if greeting else "no answer") in done.stderr


def test_nobody_there(many):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    done = send(many, f"http://127.0.0.1:{port}")
    assert done.returncode == 5 and f"cannot connect to 127.0.0.1 port {port}" in done.stderr
    done = send(many, "http://does-not-exist.invalid")
    assert done.returncode == 5 and "no such host" in done.stderr


@pytest.mark.parametrize("url, said", [
    ("https://", "not an address"), ("https://u:p@host", "not an address"), ("ftp://a", "not an address"), ("localhost:4318", "not an address"), ("http://", "not an address"),
    ("http://a:0", "not an address"), ("http://a:70000", "not an address"), ("http://a:b", "not an address"),
    ("http://a b/", "not an address"), ("http://a/\r\nX: y", "not an address"), ("http://[::1", "not an address"),
    ("http://" + "a" * 300, "not an address"), ("http://a/" + "b" * 2000, "not an address")])
def test_bad_addresses(url, said, many):
    done = send(many, url)
    assert done.returncode == 1 and said in done.stderr
    done = run_command(PLUMB, "export", many, "--endpoint", "http://localhost", "-o", "x")
    assert done.returncode == 1 and "--endpoint" in done.stderr
    done = run_command(PLUMB, "export", many, "--endpoint", "http://localhost", "-F", "pprof")
    assert done.returncode == 1


@pytest.mark.parametrize("drip", ["HTTP/1.1 200 OK", "a body", "silence", "no reader"])
def test_an_endpoint_that_drips(many, drip):
    """However slowly bytes come, a request ends in time."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        def serve():
            peer, _ = server.accept()
            with peer:
                if drip == "a body":
                    peer.recv(1 << 20)
                    peer.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n")
                while not stop.wait(0.3):
                    try:
                        peer.sendall(b"H" if drip == "HTTP/1.1 200 OK" else b"x" if drip == "a body" else b"")
                    except OSError:
                        return
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        done = run_command(PLUMB, "export", many, "--endpoint", f"http://127.0.0.1:{server.getsockname()[1]}",
                           "--timeout", "2", timeout=25)
        stop.set()
        thread.join(10)
    assert done.returncode == 5 and done.stderr.count("\n") == 1 and "in 2 seconds" in done.stderr, done.stderr


def test_an_answer_without_end(many):
    """No more is read of it than a megabyte."""
    sent = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        def serve():
            peer, _ = server.accept()
            with peer:
                peer.settimeout(10)
                peer.sendall(b"HTTP/1.1 500 No\r\n\r\n")
                try:
                    for _ in range(1000):
                        peer.sendall(b"y" * 1000000)
                        sent.append(1)
                except OSError:
                    pass
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        done = run_command(PLUMB, "export", many, "--endpoint", f"http://127.0.0.1:{server.getsockname()[1]}", timeout=60)
        thread.join(20)
    assert done.returncode == 5 and "500 No" in done.stderr and len(sent) < 100, (done.stderr, len(sent))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    if not shutil.which("openssl"):
        pytest.skip("no openssl to make a certificate with")
    done = run_command("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                       "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", folder / "key.pem",
                       "-out", folder / "cert.pem")
    assert done.returncode == 0, done.stderr
    return folder


def secure(collector, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    collector.socket = context.wrap_socket(collector.socket, server_side=True)
    collector.handle_error = lambda *_: None
    collector.url = f"https://127.0.0.1:{collector.server_port}"
    return collector


@pytest.fixture(scope="module")
def curl():
    try:
        ctypes.CDLL("libcurl.so.4")
    except OSError:
        pytest.skip("no libcurl here")


@pytest.mark.parametrize("by", ["option", "environment"])
def test_https(many, certificate, tmp_path, curl, by):
    trust = certificate / "cert.pem"
    with secure(Collector(), certificate) as collector:
        done = run_command(PLUMB, "export", many, "--endpoint", collector.url, *(["--ca", trust] if by == "option" else []),
                           env={} if by == "option" else {"SSL_CERT_FILE": str(trust)})
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert [path for path, _, _ in collector.requests] == ["/v1/traces"] * 3
        assert all(headers["Content-Type"] == "application/json" and "Expect" not in headers
                   for _, headers, _ in collector.requests)
        sent = tmp_path / "sent.json"
        sent.write_bytes(b"".join(body for _, _, body in collector.requests))
    assert paths(read_back(sent, tmp_path), "op.time") == paths(many, "op.time")


def test_https_of_somebody_else(many, certificate, curl):
    """A certificate that nobody vouches for: nothing is sent."""
    with secure(Collector(), certificate) as collector:
        done = send(many, collector.url)
        assert done.returncode == 5 and "certificate" in done.stderr.lower() and done.stderr.count("\n") == 1
        assert not collector.requests
    done = run_command(PLUMB, "export", many, "--endpoint", "https://localhost:1", "--ca", "/nonexistent/ca.pem")
    assert done.returncode == 2 and "/nonexistent/ca.pem" in done.stderr


def test_https_follows_no_redirection(many, certificate, curl):
    with Collector() as other, secure(Collector((307, "", False)), certificate) as collector:
        class Redirecting(Handler):
            def end_headers(self):
                self.send_header("Location", other.url)
                super().end_headers()
        collector.RequestHandlerClass = Redirecting
        done = run_command(PLUMB, "export", many, "--endpoint", collector.url, "--ca", certificate / "cert.pem")
        assert done.returncode == 5 and "answers 307" in done.stderr, done.stderr
        assert not other.requests


def test_https_in_time(many, certificate, curl):
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = run_command(PLUMB, "export", many, "--endpoint", f"https://127.0.0.1:{server.getsockname()[1]}", "--ca",
                           certificate / "cert.pem", "--timeout", "2", timeout=25)
    assert done.returncode == 5 and "in 2 seconds" in done.stderr, done.stderr


def test_https_without_libcurl(many, tmp_path):
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4"):
        (tmp_path / name).write_text("this is no library")
    environment = {"LD_LIBRARY_PATH": str(tmp_path)}
    done = run_command(PLUMB, "export", many, "--endpoint", "https://localhost:1", env=environment)
    assert done.returncode == 5 and "https needs libcurl" in done.stderr and done.stderr.count("\n") == 1
    with Collector() as collector:
        done = run_command(PLUMB, "export", many, "--endpoint", collector.url, env=environment)
        assert done.returncode == 0 and len(collector.requests) == 3


def test_a_real_collector(many, traced, tmp_path):
    """OpenTelemetry's own, which writes what it took; scripts/install-readers.sh collector builds it."""
    program = reader("otelcol")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    taken = tmp_path / "taken.json"
    (tmp_path / "config.yaml").write_text(json.dumps({
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
        "exporters": {"file": {"path": str(taken)}},
        "service": {"telemetry": {"metrics": {"level": "none"}},
                    "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["file"]}}}}))
    running = subprocess.Popen([program, "--config", tmp_path / "config.yaml"],
                               stderr=subprocess.PIPE, text=True)
    try:
        for line in running.stderr:
            if "Everything is ready" in line:
                break
        for profile in many, traced.path:
            done = send(profile, f"http://127.0.0.1:{port}")
            assert (done.returncode, done.stderr) == (0, "")
        done = send(many, f"http://127.0.0.1:{port}/elsewhere")
        assert done.returncode == 5 and "404" in done.stderr
    finally:
        running.terminate()
        running.communicate(timeout=30)
    back = read_back(taken, tmp_path)
    assert devices(back) == devices(traced.path)
    expected = paths(many, "op.time")
    assert {key: value for key, value in paths(back, "op.time").items() if key in expected} == expected
    assert len(work_of(decoded(taken))) == 9000 + len(list(traced.profile.spans()))
