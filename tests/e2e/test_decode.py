# SPDX-License-Identifier: Apache-2.0
"""plumb's decoder of machine code against what nvdisasm says of tests/data/sass.

tests/data/sass/README.md says how its files were made. Where nvdisasm is installed it is asked again.
"""
import importlib.util
import json
import pathlib
import shutil

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data/sass"
SPEC = importlib.util.spec_from_file_location("decode", ROOT / "tests/accuracy/decode.py")
decode = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(decode)
CUBINS = sorted(path.stem for path in DATA.glob("*.cubin"))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return decode.build(tmp_path_factory.mktemp("decode"))


def recorded(name):
    """As decode.disassembled."""
    functions, labels = {}, {}
    for line in (DATA / f"{name}.jsonl").read_text().splitlines():
        row = json.loads(line)
        if "function" in row:
            rows = functions[row["function"]] = []
            labels[row["function"]] = row["labels"]
        else:
            offset, assembly, low, high, read, written = row["row"]
            rows.append((offset, assembly, int(low, 16), int(high, 16), {(one[0], int(one[1:])) for one in read},
                         {(one[0], int(one[1:])) for one in written}))
    return functions, labels


def disagreements(ours, functions, labels):
    return [(name, row[1], kinds, fields) for name, rows in functions.items()
            for row, fields in zip(rows, ours[name]) for kinds in [decode.compare(fields, row, labels[name])] if kinds]


@pytest.mark.parametrize("name", CUBINS)
def test_agrees_with_what_was_recorded(program, name):
    functions, labels = recorded(name)
    ours = decode.decoded(decode.run(program, DATA / f"{name}.cubin"))
    assert functions.keys() == ours.keys()
    assert sum(map(len, functions.values())) > 500
    assert all(len(ours[function]) >= len(rows) for function, rows in functions.items())
    assert disagreements(ours, functions, labels) == []


@pytest.mark.skipif(not shutil.which("nvdisasm"), reason="nvdisasm is not installed")
@pytest.mark.parametrize("name", CUBINS)
def test_agrees_with_nvdisasm(program, name):
    cubin = DATA / f"{name}.cubin"
    functions, labels = decode.disassembled(decode.run("nvdisasm", "-hex", "-c", "-lrm", "narrow", cubin))
    assert disagreements(decode.decoded(decode.run(program, cubin)), functions, labels) == []


def test_a_wrong_register_is_found(program):
    functions, labels = recorded("sm_90")
    ours = decode.decoded(decode.run(program, DATA / "sm_90.cubin"))
    name = next(iter(functions))
    row = next(fields for fields in ours[name] if fields[1] == "IMAD")
    row[4] = "R200:1:0"
    assert [kinds for _, _, kinds, _ in disagreements(ours, functions, labels)] == [["writes"]]


def test_modules_of_a_fatbin(program):
    assert decode.run(program, DATA / "zstd.fatbin").startswith("module\tsm_80\t")
