# SPDX-License-Identifier: Apache-2.0
"""Names of native frames: regions written here name places in programs compiled here, and what settle
makes of each place must be what addr2line says of it: function, inlined calls, file and line."""
import ctypes
import functools
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess

import pytest
from conftest import PLUMB, run_command
from regionwriter import SECOND, Region

import plumb as plumb_package

SOURCES = pathlib.Path(__file__).resolve().parent / "native"
COMPILER = os.environ.get("CXX", "g++")

pytestmark = pytest.mark.skipif(not all(map(shutil.which, [COMPILER, "addr2line", "objdump", "nm"])),
                                reason="needs g++ and binutils")


def do(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True,
                          **options).stdout


def compiled(folder, *options, name="program", source="inlines.cpp"):
    path = folder / name
    do(COMPILER, "-O2", *options, "-o", path, SOURCES / source)
    return path


def build_id(path):
    return build_id_of(path, path.stat())


@functools.cache
def build_id_of(path, _):
    """Of a file with this stat(): tests ask for each address."""
    found = re.search(r"Build ID: ([0-9a-f]+)", do("readelf", "-n", path))
    return bytes.fromhex(found[1]) if found else b""


def text_addresses(path):
    """The address of every instruction of the program's own functions."""
    listing = do("objdump", "-d", "-j", ".text", "--no-show-raw-insn", path)
    return [int(found[1], 16) for found in re.finditer(r"^ +([0-9a-f]+):\t", listing, re.M)]


def functions(path):
    """{mangled name: (address, size)} of what nm knows."""
    found = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tTwWi] (.+)$", do("nm", "-S", path), re.M)
    return {name: (int(address, 16), int(size, 16)) for address, size, name in found}


def addr2line(path, addresses, tool="addr2line"):
    """{address: [(function, file, line), …]}, innermost first."""
    given = "\n".join(hex(address) for address in addresses)
    found, current = {}, None
    lines = iter(do(tool, "-a", "-f", "-i", "-C", "-e", path, input=given).splitlines())
    for line in lines:
        if re.fullmatch(r"0x[0-9a-f]+", line):
            current = found.setdefault(int(line, 16), [])
            continue
        file, _, number = re.sub(r" \(discriminator \d+\)", "", next(lines)).rpartition(":")
        # LLVM's demangler leaves out a space.
        line = re.sub(">(?=>)", "> ", line) if tool != "addr2line" else line
        current.append((line, None if file == "??" else os.path.normpath(file),
                        int(number) if number.isdigit() and number != "0" else None))
    return found


class Settled:
    """A region with one native node for each (code, address), each below a Python frame named after the
    address, settled."""

    def __init__(self, folder, places, environment=None, region=None):
        self.folder = folder
        runs = folder / "regions"
        runs.mkdir(exist_ok=True)
        region = region or Region()
        thread = region.thread(1)
        codes = {}
        for number, (path, identity, address) in enumerate(places):
            if (path, identity) not in codes:
                codes[path, identity] = region.code(path, identity)
            top = region.node(0, "python", f"site {number}", file="test.py", number=1)
            region.value(region.native(top, codes[path, identity], address), thread, 10)
        region.write(runs / "1.region")
        self.path = folder / "settled.plumb"
        self.done = run_command(PLUMB, "settle", runs, "-o", self.path, env=environment)
        assert self.done.returncode == 0, self.done.stderr
        self.profile = plumb_package.Profile(self.path)
        self.tops = {node.name: node for node in self.profile.children}

    def frames(self, number):
        """The nodes of place NUMBER, innermost first."""
        (node,) = self.tops[f"site {number}"].children
        found = [node]
        while node.children:
            (node,) = node.children
            found.insert(0, node)
        assert [n for n in found if "op.duration" in n.exclusive] == found[:1]
        return found

    def ledger(self):
        """{fate: {detail: count}} of native frames."""
        found = {}
        for row in self.profile.ledger:
            if row.source == "symbol":
                found.setdefault(row.fate, {})[row.detail] = row.count
        return found


def same(path, addresses, folder, code=None, tool="addr2line", **more):
    """Settles ADDRESSES and compares them with addr2line on PATH; the code object is CODE or PATH."""
    code = code or path
    settled = Settled(folder, [(code, build_id(code), address) for address in addresses],
                      **more)
    truth = addr2line(path, addresses, tool)
    symbols = functions(path)
    wrong = []
    for number, address in enumerate(addresses):
        nodes = settled.frames(number)
        own = [(node.name, node.source_file and os.path.normpath(node.source_file),
                node.source_line) for node in nodes]
        if own != truth[address]:
            wrong.append((hex(address), own, truth[address]))
        assert [node.kind for node in nodes] == ["inline"] * (len(nodes) - 1) + ["native"]
        assert nodes[-1].file == build_id(code).hex()
        start, size = symbols[nodes[-1].symbol]
        assert start <= address < start + size and (nodes[-1].line or 0) == address - start
    assert not wrong, f"{len(wrong)} of {len(addresses)}: {wrong[:3]}"
    assert settled.ledger() == {"received": {None: len(addresses)},
                                "attributed": {None: len(addresses)}}
    return settled


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("program"), "-g")


def own_addresses(path):
    """Instructions of the functions that were compiled here, not of the C runtime's."""
    wanted = [(start, start + size) for name, (start, size) in functions(path).items()
              if re.search("shapes|lambda|^plain_c|^main$", name) and size]
    return [address for address in text_addresses(path)
            if any(start <= address < end for start, end in wanted)]


def test_every_instruction_as_addr2line(program, tmp_path):
    addresses = own_addresses(program)
    assert len(addresses) > 100
    settled = same(program, addresses, tmp_path)
    names = {node.name for node in settled.profile.of_kind("inline")}
    assert {"shapes::Area::size() const", "shapes::Area::scaled(double)"} <= names
    (row,) = settled.profile.code_objects
    assert (row.kind, row.path, row.build_id, row.bytes) == (
        "elf", str(program), build_id(program).hex(), program.stat().st_size)


@pytest.mark.parametrize("options", [
    ["-gdwarf-4"], ["-g", "-gz"], ["-g", "-static-pie"], ["-g", "-no-pie"], ["-g", "-flto"],
    ["-g", "-static"], ["-g", "-O3", "-fno-inline-small-functions"],
    ["-g", "-Wl,--build-id=sha1", "-ffunction-sections", "-Wl,--gc-sections"],
], ids=" ".join)
def test_other_ways_to_build(tmp_path, options):
    path = compiled(tmp_path, *options)
    same(path, own_addresses(path), tmp_path)


@pytest.mark.skipif(not all(map(shutil.which, ["clang++-19", "llvm-addr2line-19"])),
                    reason="no LLVM 19")
def test_clang_has_no_table_of_ranges(tmp_path):
    path = tmp_path / "program"
    do("clang++-19", "-O2", "-g", "-Wl,--build-id", "-o", path, SOURCES / "inlines.cpp")
    assert ".debug_aranges" not in do("readelf", "-SW", path)
    same(path, own_addresses(path), tmp_path, tool="llvm-addr2line-19")


def test_without_debug_information_names_alone(tmp_path):
    path = compiled(tmp_path)
    addresses = own_addresses(path)
    settled = Settled(tmp_path, [(path, build_id(path), address) for address in addresses])
    truth, known = addr2line(path, addresses), functions(path)
    for number, address in enumerate(addresses):
        (node,) = settled.frames(number)
        assert (node.name, node.source_file, node.source_line) == (truth[address][0][0], None, None)
        assert address - (node.line or 0) == known[node.symbol][0]


def test_a_stripped_program_has_the_begins_of_functions(tmp_path):
    whole = compiled(tmp_path, "-Wl,--export-dynamic-symbol=plain_c")
    path = tmp_path / "stripped"
    do("objcopy", "--strip-all", whole, path)
    addresses = own_addresses(whole)
    settled = Settled(tmp_path, [(path, build_id(path), address) for address in addresses])
    starts = {address: start for start, size in functions(whole).values()
              for address in addresses if start <= address < start + size}
    exported, _ = functions(whole)["plain_c"]
    for number, address in enumerate(addresses):
        (node,) = settled.frames(number)
        start = starts[address]
        assert node.name == ("plain_c" if start == exported else f"stripped+{start:#x}")
        assert (node.line or 0) == address - start
    ledger = settled.ledger()
    assert ledger["no_symbol"]["stripped: it has no symbol at that place"] + ledger["attributed"][None] == \
        ledger["received"][None] == len(addresses)


# ---- separate debug information ----

def split(folder, *options):
    """(stripped program, debug file) of a program whose .gnu_debuglink names the file."""
    path = compiled(folder, "-g", *options)
    debug = folder / "program.debug"
    do("objcopy", "--only-keep-debug", path, debug)
    do("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", path)
    return path, debug


@pytest.mark.parametrize("options", [[], ["-Wl,--build-id=none"]], ids=["build id", "checksum"])
@pytest.mark.parametrize("place", [".", ".debug"])
def test_a_debug_file_beside_the_program(tmp_path, place, options):
    path, debug = split(tmp_path, *options)
    whole = compiled(tmp_path, "-g", *options, name="whole")
    (tmp_path / ".debug").mkdir()
    debug.rename(tmp_path / place / debug.name)
    settled = Settled(tmp_path, [(path, build_id(path), address)
                                 for address in own_addresses(whole)])
    truth = addr2line(whole, own_addresses(whole))
    for number, address in enumerate(own_addresses(whole)):
        own = [(node.name, node.source_file, node.source_line) for node in settled.frames(number)]
        assert own == truth[address]


def test_a_debug_file_of_another_program_is_not_used(tmp_path):
    path, debug = split(tmp_path)
    do(COMPILER, "-g", "-o", tmp_path / "other", SOURCES / "inlines.cpp")
    do("objcopy", "--only-keep-debug", tmp_path / "other", debug)
    settled = Settled(tmp_path, [(path, build_id(path), 0x1200)])
    assert [node.name[:10] for node in settled.frames(0)] == ["program+0x"]
    # Nor one whose checksum differs, where there is no build id.
    path, debug = split(tmp_path, "-Wl,--build-id=none")
    debug.write_bytes(debug.read_bytes() + b"\0")
    settled = Settled(tmp_path, [(path, b"", 0x1200)])
    assert [node.name[:10] for node in settled.frames(0)] == ["program+0x"]


@pytest.mark.skipif(not shutil.which("xz"), reason="no xz")
def test_the_symbol_table_in_gnu_debugdata(tmp_path):
    whole = compiled(tmp_path, "-g")
    path = tmp_path / "mini"
    do("objcopy", "--only-keep-debug", "--strip-debug", whole, tmp_path / "symbols")
    do("xz", tmp_path / "symbols")
    do("objcopy", "--strip-all", f"--add-section=.gnu_debugdata={tmp_path / 'symbols.xz'}", whole,
       path)
    addresses = own_addresses(whole)
    settled = Settled(tmp_path, [(path, build_id(path), address) for address in addresses])
    known = functions(whole)
    for number, address in enumerate(addresses):
        (node,) = settled.frames(number)
        assert address - (node.line or 0) == known[node.symbol][0]


def has_debuginfod():
    try:
        ctypes.CDLL("libdebuginfod.so.1")
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_debuginfod(), reason="no libdebuginfod")
def test_debuginfod_is_asked_when_the_environment_names_a_server(tmp_path):
    path, debug = split(tmp_path)
    shelf = tmp_path / "server/buildid" / build_id(path).hex()
    shelf.mkdir(parents=True)
    debug.rename(shelf / "debuginfo")
    places = [(path, build_id(path), functions(shelf / "debuginfo")["plain_c"][0])]
    environment = {"DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache")}
    settled = Settled(tmp_path, places, {**environment, "DEBUGINFOD_URLS": ""})
    assert settled.frames(0)[0].source_file is None and not (tmp_path / "cache").exists()
    settled = Settled(tmp_path, places,
                      {**environment, "DEBUGINFOD_URLS": f"file://{tmp_path}/server"})
    assert settled.frames(0)[-1].name == "plain_c"
    assert settled.frames(0)[-1].source_file == str(SOURCES / "inlines.cpp")
    assert f"the debug information of {path} was fetched from debuginfod" in settled.done.stderr


# ---- what has no symbol of its own ----

@pytest.mark.parametrize("options", [[], ["-fcf-protection=full", "-Wl,-z,ibtplt"],
                                     ["-Wl,-z,now"], ["-no-pie"]], ids=" ".join)
def test_stubs_are_named_after_what_they_call(tmp_path, options):
    path = compiled(tmp_path, *options)
    listing = do("objdump", "-d", "-C", "-j", ".plt", "-j", ".plt.sec", "-j", ".plt.got", path)
    found = re.findall(r"^([0-9a-f]+) <(.+@plt)>:", listing, re.M)
    assert found
    settled = Settled(tmp_path, [(path, build_id(path), int(address, 16) + 4)
                                 for address, _ in found])
    for number, (_, name) in enumerate(found):
        (node,) = settled.frames(number)
        function = name[:-len("@plt")]
        assert node.symbol.endswith("@plt") and node.line == 4
        assert do("c++filt", node.symbol[:-len("@plt")]).strip() == function


def test_the_vdso_and_generated_code(tmp_path):
    region = Region()
    code = region.code("linux-vdso.so.1", b"\1" * 20)
    for number, (file, name) in enumerate([(code, "linux-vdso.so.1"), (0, "[generated code]")]):
        top = region.node(0, "python", f"site {number}", file="test.py", number=1)
        region.value(region.native(top, file, 0x123, name), region.thread(1), 10)
    settled = Settled(tmp_path, [], region=region)
    assert [settled.frames(number)[0].name for number in range(2)] == ["[vdso]", "[generated code]"]
    assert settled.ledger() == {"received": {None: 1}, "attributed": {None: 1}}


def test_local_functions_of_one_name_stay_apart(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.c").write_text(
            f"static __attribute__((noinline)) int same(int x) {{ volatile int y = x; return y + "
            f"{ord(name)}; }} int {name}(int x) {{ return same(x) * 2; }}\n")
    (tmp_path / "main.c").write_text("int a(int), b(int); int main(void) { return a(1) + b(2); }\n")
    path = tmp_path / "twins"
    do("gcc", "-O2", "-g", "-o", path, *(tmp_path / f"{name}.c" for name in ["a", "b", "main"]))
    starts = [int(found, 16) for found in re.findall(r"^([0-9a-f]+) t same$", do("nm", path), re.M)]
    assert len(starts) == 2
    settled = Settled(tmp_path, [(path, build_id(path), start) for start in starts])
    nodes = [settled.frames(number)[0] for number in range(2)]
    assert [node.name for node in nodes] == ["same", "same"]
    assert {pathlib.Path(node.source_file).name for node in nodes} == {"a.c", "b.c"}


# ---- files that are not what they should be ----

def test_another_build_id_is_not_used(program, tmp_path):
    settled = Settled(tmp_path, [(program, bytes(20), 0x1200), (program, build_id(program)[:8], 7)])
    assert [settled.frames(0)[0].name, settled.frames(1)[0].name] == ["program+0x1200", "program+0x7"]
    assert settled.frames(0)[0].file == bytes(20).hex()
    assert settled.ledger()["no_symbol"] == {"program: its file has changed since it ran": 2}


def test_a_file_that_changed_after_the_run_is_not_used(tmp_path):
    path = compiled(tmp_path, "-Wl,--build-id=none")
    address = functions(path)["plain_c"][0]
    changed = path.stat().st_ctime_ns
    for start, expected in [(changed - 60 * SECOND, f"program+{address:#x}"), (changed, "plain_c")]:
        region = Region(start_realtime=start)
        settled = Settled(tmp_path, [(path, b"", address)], region=region)
        assert settled.frames(0)[0].name == expected
        assert settled.frames(0)[0].file == str(path)


def test_files_that_are_gone_or_no_code(tmp_path):
    text = tmp_path / "text"
    text.write_text("no code")
    short = tmp_path / "short"
    short.write_bytes(compiled(tmp_path).read_bytes()[:100])
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "empty").touch()
    do("ar", "rc", tmp_path / "archive", tmp_path / "program")
    reasons = {
        tmp_path / "gone": "its file is gone or cannot be read",
        text: "its file is not a 64-bit ELF program or library",
        short: "its file is not a 64-bit ELF program or library",
        tmp_path / "empty": "its file is not a 64-bit ELF program or library",
        tmp_path / "archive": "its file is not a 64-bit ELF program or library",
        tmp_path / "fifo": "its path is not a regular file",
        tmp_path: "its path is not a regular file",
        pathlib.Path("/dev/zero"): "its path is not a regular file",
        pathlib.Path("/dev/tty"): "its path is not a regular file",
    }
    settled = Settled(tmp_path, [(path, b"", 0x10 + number)
                                 for number, path in enumerate(reasons)])
    for number, path in enumerate(reasons):
        assert settled.frames(number)[0].name == f"{path.name}+{0x10 + number:#x}"
    assert settled.ledger()["no_symbol"] == {f"{path.name}: {why}": 1
                                             for path, why in reasons.items()}
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)


def test_a_damaged_region(program, tmp_path):
    region = Region()
    thread = region.thread(1)
    codes = [region.code(program, build_id(program), build_id_bytes=size)
             for size in (0, 21, 0xffffffff)]
    codes += [region.code(path) for path in (b"", b"relative/path", b"\xff\xfe/\n", b"/" * 40000,
                                             b"/proc/self/mem", b"/etc/passwd\0/x")]
    codes += [thread, 1, 0xffffffff]
    for number, code in enumerate(codes):
        top = region.node(0, "python", f"site {number}", file="test.py", number=1)
        for offset in (0, 1, 0x1200, 0xffffffff):
            region.value(region.native(top, code, offset), thread, 10)
    settled = Settled(tmp_path, [], region=region)
    assert settled.ledger()["received"][None] > 0
    natives = settled.profile.of_kind("native")
    assert all(node.name for node in natives)


def test_damaged_programs(program, tmp_path):
    """Each with some bytes changed: settle always ends well, whatever reading them does."""
    data, places, state = program.read_bytes(), [], 1
    for number in range(60):
        changed = bytearray(data)
        for _ in range(1 + number % 40):
            state = (state * 1103515245 + 12345) % 2 ** 31
            # The heads of the file and of its sections, or anywhere.
            at = state % (512 if number % 3 == 0 else len(data))
            at = len(data) - 1 - state % 2500 if number % 3 == 1 else at
            state = (state * 1103515245 + 12345) % 2 ** 31
            changed[at] = state >> 8 & 0xff
        path = tmp_path / f"damaged {number}"
        path.write_bytes(changed[:len(data) - (number * 977 if number % 5 == 4 else 0)])
        places += [(path, b"", address) for address in own_addresses(program)[::40]]
    settled = Settled(tmp_path, places)
    ledger = settled.ledger()
    assert ledger["received"] == {None: len(places)}
    assert sum(ledger["attributed"].values()) + sum(ledger["no_symbol"].values()) == len(places)


# ---- what reports make of it ----

def report(path, *arguments):
    done = run_command(PLUMB, "report", path, "-m", "op.duration", "--top", "0", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def settled(program, tmp_path):
    # A call in `scaled`, inlined into `size`, inlined into another, and a place behind all code.
    library = pathlib.Path(re.search(r"=> (\S*/libc\.so\S*)", do("ldd", program))[1])
    truth = addr2line(program, own_addresses(program))
    deep = next(address for address, frames in truth.items()
                if [name for name, _, _ in frames][:2] ==
                ["shapes::Area::scaled(double)", "shapes::Area::size() const"])
    places = [(program, build_id(program), deep),
              (program, build_id(program), functions(program)["plain_c"][0])]
    found = Settled(tmp_path, places + [(library, build_id(library), 0xffffff0)])
    found.truth, found.library = truth[deep], library
    return found


def test_rows_of_functions_and_libraries(program, settled):
    rows = json.loads(report(settled.path, "--by", "native", "--json"))["rows"]
    named = {row["name"]: row for row in rows}
    assert set(named) == {"shapes::Area::scaled(double)", "shapes::Area::size() const",
                          settled.frames(0)[-1].name, "plain_c", f"{settled.library.name}+0xffffff0"}
    scaled = named["shapes::Area::scaled(double)"]
    assert (scaled["kind"], scaled["source_file"], scaled["library"]) == (
        "inline", str(SOURCES / "inlines.cpp"), None)
    assert scaled["exclusive"]["op.duration"]["count"] == 1
    plain = named["plain_c"]
    assert (plain["kind"], plain["library"], plain["file"], plain["user_file"]) == (
        "native", str(program), build_id(program).hex(), "test.py")
    assert named["shapes::Area::size() const"]["exclusive"] == {}
    rows = json.loads(report(settled.path, "--by", "library", "--json"))["rows"]
    assert {row["name"]: row["exclusive"]["op.duration"]["count"] for row in rows} == {
        "program": 2, settled.library.name: 1}
    assert {row["library"] for row in rows} == {str(program), str(settled.library)}
    assert "program" in report(settled.path, "--by", "native")


def test_trees_show_where_the_code_stands(settled):
    tree = report(settled.path, "--by", "context", "--width", "0")
    for name, file, line in settled.truth:
        assert f"{name.replace('() const', '').replace('(double)', '').split('(shapes')[0]} at " \
            f"{os.path.basename(file)}:{line}" in tree
    assert f"{settled.library.name}+0xffffff0" in tree
    contexts = json.loads(report(settled.path, "--by", "context", "--json"))["contexts"]
    lines = {(row["source_file"], row["source_line"]) for row in contexts if row["source_file"]}
    assert {(file, line) for _, file, line in settled.truth} <= lines


def test_patterns_of_the_package_match_sources(settled):
    name, _, line = settled.truth[0]
    (node,) = settled.profile.match(f"**/inline:*@inlines.cpp:{line}")
    assert node.name == name
    assert len(settled.profile.match("**/native:*@inlines.cpp")) == 2
    assert settled.profile.match(f"**/native:*@inlines.cpp:{line + 1000}") == []


def test_filters_match_sources_and_libraries(settled):
    inner = settled.truth[0]
    found = json.loads(report(settled.path, "--by", "context", "--json", "--filter",
                              f"inlines.cpp:{inner[2]}$"))["contexts"]
    assert any(row["name"] == inner[0] for row in found)
    found = json.loads(report(settled.path, "--by", "native", "--json", "--filter",
                              re.escape(str(settled.library))))["rows"]
    assert [row["name"] for row in found] == [f"{settled.library.name}+0xffffff0"]
    head, *rows = report(settled.path, "--by", "native", "--csv").splitlines()
    assert head.endswith(",share,source_file,source_line,library,calls,mean_ns")
    assert any(row.startswith("plain_c,native,") and "/program," in row for row in rows)


def test_joining_keeps_code_objects(settled, program, tmp_path):
    again = tmp_path / "again"
    again.mkdir()
    other = Settled(again, [(program, build_id(program), 0x1200)], region=Region(pid=2))
    joined = tmp_path / "joined.plumb"
    done = run_command(PLUMB, "settle", settled.path, other.path, "-o", joined)
    assert done.returncode == 0, done.stderr
    objects = plumb_package.Profile(joined).code_objects
    assert [(o.process, o.path) for o in objects] == [
        (0, str(program)), (0, str(settled.library)), (1, str(program))]
    rows = json.loads(report(joined, "--by", "library", "--json"))["rows"]
    assert {row["name"]: row["exclusive"]["op.duration"]["count"] for row in rows} == {
        "program": 3, settled.library.name: 1}
