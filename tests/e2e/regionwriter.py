# SPDX-License-Identifier: Apache-2.0
"""Writes a region by hand (src/region/layout.h), as the collector would leave it.

    region = Region(pid=7)
    code = region.code("/usr/lib/libm.so.6", bytes.fromhex("…"))
    line = region.node(0, "python", "main", file="main.py", number=3)
    region.value(region.native(line, code, 0x1234), region.thread(7), nanoseconds=10)
    region.write(folder / "7.region")
"""
import struct
import time

HEADER, CHUNK = 4096, 65536
KINDS = {"python": 1, "operator": 3, "native": 5, "gpu_api": 7, "graph": 8, "kernel": 10}
ORIGIN_KINDS = {"graph_capture": 2}
NODE, VALUE, ORIGIN, CODE, PROCESS, STRING, THREAD = 1, 2, 4, 9, 11, 12, 14
OP_DURATION = 3
SECOND = 10 ** 9


class Region:
    def __init__(self, pid=1, start_realtime=None):
        self.pid = pid
        self.start_realtime = time.time_ns() if start_realtime is None else start_realtime
        self.records = b""
        self.strings = {}
        process = struct.pack("<IIiiIIIIiIQQ", pid, 1, -1, -1, self.text("program"),
                              self.text("node"), 0, 0, 0, 0, 100 * SECOND, 110 * SECOND)
        self.add(PROCESS, process)

    def add(self, kind, payload):
        """The id of the new record."""
        payload += b"\0" * (-len(payload) % 8)
        number = (HEADER + 24 + len(self.records)) // 8
        self.records += struct.pack("<HHI", kind, 0, 8 + len(payload)) + payload
        return number

    def text(self, text):
        if text not in self.strings:
            data = text if isinstance(text, bytes) else text.encode()
            self.strings[text] = self.add(STRING, struct.pack("<II", len(data), 0) + data)
        return self.strings[text]

    def code(self, path, build_id=b"", build_id_bytes=None):
        size = len(build_id) if build_id_bytes is None else build_id_bytes
        return self.add(CODE, struct.pack("<II32sQQQ", self.text(str(path)), size,
                                          build_id[:32], 0x7f0000000000, 0, 0))

    def node(self, parent, kind, name, file=None, number=0, file_id=None):
        if file_id is None:
            file_id = self.text(file) if file else 0
        return self.add(NODE, struct.pack("<IBBHIIIIII", parent, KINDS[kind], 0, 0, self.text(name),
                                          file_id, number & 0xffffffff, 0, 0, 0))

    def native(self, parent, code, offset, name="?"):
        return self.node(parent, "native", name, number=offset, file_id=code)

    def thread(self, tid):
        return self.add(THREAD, struct.pack("<IIQQIIQQQQQQ", tid, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))

    def origin(self, node, origin, kind):
        return self.add(ORIGIN, struct.pack("<IIHHI", node, origin, ORIGIN_KINDS[kind], 0, 0))

    def value(self, node, track, nanoseconds):
        return self.add(VALUE, struct.pack("<IIHHIIIqQqqdd", node, track, OP_DURATION, 0, 0, 0, 0,
                                           nanoseconds, 1, nanoseconds, nanoseconds,
                                           float(nanoseconds), 0.0))

    def write(self, path):
        chunk = -(-(24 + len(self.records)) // CHUNK) * CHUNK
        size = HEADER + chunk
        header = struct.pack("<8sIIIIIIQQQQIIIIQQQQ", b"PLUMBRG\n", 1, 1, 0x01020304, HEADER, CHUNK,
                             self.pid, size, 100 * SECOND, self.start_realtime, size, 2, 0, 0, 0,
                             0, 0, 0, 110 * SECOND)
        head = struct.pack("<IIIIII", 0x4b484350, 1, chunk, 0, len(self.records), 0)
        body = header.ljust(HEADER, b"\0") + (head + self.records).ljust(chunk, b"\0")
        path.write_bytes(body)
