# SPDX-License-Identifier: Apache-2.0
"""The machine code of the functions in a cubin, which is an ELF file."""
import struct


def texts(data):
    """{mangled name: machine code} of the cubin with the bytes DATA."""
    start, = struct.unpack_from("<Q", data, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", data, 0x3a)
    headers = [struct.unpack_from("<IIQQQQ", data, start + size * k) for k in range(count)]
    names = headers[names_at][4]
    found = {}
    for name, _, _, _, offset, length in headers:
        end = data.index(b"\0", names + name)
        section = data[names + name:end].decode()
        if section.startswith(".text."):
            found[section[len(".text."):]] = data[offset:offset + length]
    return found
