# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of `plumb view`: a plumb with a small page of the test's own, and a running server.

    with Viewer(plumb, path) as viewer:
        status, headers, body = viewer.ask("api/1/about")
"""
import functools
import gzip
import http.client
import json
import os
import pathlib
import shlex
import signal
import struct
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD") or ROOT / "build").resolve()
SCRIPT = 'document.getElementById("plumb").textContent = "\u00e9";\n'
STYLE = "body { margin: 0 }\n"
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "COLUMNS": "150"}


def recorded(name, folder):
    """A profile of tests/data, in FOLDER."""
    path = folder / f"{name.replace('/', '-')}.plumb"
    if not path.exists():
        path.write_bytes(gzip.decompress((ROOT / f"tests/data/{name}.plumb.gz").read_bytes()))
    return path


def link_plumb(folder):
    """A plumb whose page is SCRIPT and STYLE, whether web/ was built or not."""
    (folder / "app.js").write_text(SCRIPT)
    (folder / "app.css").write_text(STYLE)
    source = subprocess.run([ROOT / "scripts/bundle.py", folder / "app.js", folder / "app.css"], check=True,
                            capture_output=True, text=True, timeout=60).stdout
    (folder / "bundle.c").write_text(source)
    link = shlex.split((BUILD / "commands" / "plumb").read_text())
    subprocess.run([link[0], "-Isrc", "-fPIE", "-c", "-o", folder / "bundle.o", folder / "bundle.c"], check=True,
                   cwd=ROOT, timeout=60)
    link = [str(folder / "bundle.o") if word.endswith("tool/bundle.o") else word for word in link]
    subprocess.run([*link, "-o", str(folder / "plumb")], check=True, cwd=ROOT, timeout=120)
    return folder / "plumb"


class Viewer:
    """A running `plumb view`."""

    def __init__(self, plumb, *words, environment=None):
        self.process = subprocess.Popen([plumb, "view", "--no-browser", *map(str, words)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env={**ENVIRONMENT, **(environment or {})})
        self.address = self.process.stdout.readline().strip()
        assert self.address, self.process.stderr.read()
        host, self.base = self.address.removeprefix("http://").split("/", 1)
        self.host = host
        self.port = int(host.rpartition(":")[2])
        self.base = "/" + self.base

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()

    def end(self, number=signal.SIGINT):
        """Sends the signal; returns the exit code and what plumb said."""
        self.process.send_signal(number)
        said = self.process.communicate(timeout=20)[1]
        return self.process.returncode, said

    def ask(self, path, method="GET", headers=None, base=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, (self.base if base is None else base) + path, skip_host=True,
                                  skip_accept_encoding=True)
            sent = {"Host": self.host, **(headers or {})}
            if body is not None:
                sent["Content-Length"] = str(len(body))
            for key, value in sent.items():
                if value is not None:
                    connection.putheader(key, value)
            connection.endheaders(body)
            reply = connection.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read()
        finally:
            connection.close()

    def get(self, question):
        status, _, body = self.ask("api/1/" + question)
        assert status == 200, body
        return body

    def json(self, question):
        return json.loads(self.get(question))


def read_tables(data):
    """Binary columns (docs/folders/view.md): {id: {column: values}}; None is unknown."""
    tables, at = {}, 0
    while at < len(data):
        magic, version, columns, size, rows, *texts = struct.unpack_from("<8sIIQQQQQQ", data, at)
        assert magic == b"plumbcol" and version == 1
        name = data[at + texts[0]:at + texts[0] + texts[1]].decode()
        tables[name] = {}
        for c in range(columns):
            head = at + 64 + 64 * c
            kind, _, _, _, name_at, name_bytes, _, _, values, known, heap = struct.unpack_from("<BBHIQQQQQQQ", data, head)
            column = data[at + name_at:at + name_at + name_bytes].decode()
            tables[name][column] = read_column(data, at, rows, kind, values, known, heap)
        at += size
    return tables


def read_column(data, at, rows, kind, values, known, heap):
    def text(row):
        start, end = struct.unpack_from("<II", data, at + values + 4 * row)
        return data[at + heap + start:at + heap + end].decode("utf-8", "replace")
    readers = {1: text, 2: lambda row: struct.unpack_from("<q", data, at + values + 8 * row)[0],
               3: lambda row: struct.unpack_from("<d", data, at + values + 8 * row)[0],
               4: lambda row: bool(data[at + values + row])}
    return [readers[kind](row) if kind and (not known or data[at + known + row]) else None for row in range(rows)]


@functools.lru_cache(None)
def verb(plumb, *words):
    """What a verb prints for programs."""
    done = subprocess.run([plumb, *map(str, words)], timeout=60, capture_output=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return done.stdout
