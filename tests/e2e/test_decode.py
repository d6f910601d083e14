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


def disagreements(ours, functions, labels, architecture=""):
    return [(name, row[1], kinds, fields) for name, rows in functions.items() for row, fields in zip(rows, ours[name])
            for kinds in [decode.compare(fields, row, labels[name], architecture)] if kinds]


@pytest.mark.parametrize("name", CUBINS)
def test_agrees_with_what_was_recorded(program, name):
    functions, labels = recorded(name)
    ours = decode.decoded(decode.run(program, DATA / f"{name}.cubin"))
    assert functions.keys() == ours.keys()
    assert sum(map(len, functions.values())) > 200
    assert all(len(ours[function]) >= len(rows) for function, rows in functions.items())
    assert disagreements(ours, functions, labels, name) == []


@pytest.mark.skipif(not shutil.which("nvdisasm"), reason="nvdisasm is not installed")
@pytest.mark.parametrize("name", CUBINS)
def test_agrees_with_nvdisasm(program, name):
    cubin = DATA / f"{name}.cubin"
    functions, labels = decode.disassembled(decode.run("nvdisasm", "-hex", "-c", "-lrm", "narrow", cubin))
    assert disagreements(decode.decoded(decode.run(program, cubin)), functions, labels, name) == []


def test_a_wrong_register_is_found(program):
    functions, labels = recorded("sm_90")
    ours = decode.decoded(decode.run(program, DATA / "sm_90.cubin"))
    name = next(iter(functions))
    row = next(fields for fields in ours[name] if fields[1] == "IMAD")
    row[4] = "R200:1:0"
    assert [kinds for _, _, kinds, _ in disagreements(ours, functions, labels)] == [["writes"]]


def test_examples_of_each_form(program, tmp_path):
    lines = [line.split("\t") for line in decode.run(program, "--forms", "2", DATA / "sm_90.cubin").splitlines()]
    forms = [line for line in lines if line[0] == "form"]
    header, total = lines[0], lines[-1]
    own = decode.decoded(decode.run(program, DATA / "sm_90.cubin"))
    assert header[:3] == ["header", "0", "sm_90"]
    assert int(total[1]) == sum(map(len, own.values()))
    assert int(total[2]) < len(forms) < 2 * int(total[2])
    words = [(int(low, 16), int(high, 16)) for _, _, low, high, _ in forms]
    assert len(set(words)) == len(words)
    (tmp_path / "examples.cubin").write_bytes(decode.cubin_of(bytes.fromhex(header[3]), words))
    again = decode.decoded(decode.run(program, tmp_path / "examples.cubin"))["k"]
    assert len(again) == len(words)
    assert {row[1] for row in again} == {row[1] for rows in own.values() for row in rows}


def test_cycles_between_dependent_instructions(program):
    gaps = [line.split("\t") for line in decode.run(program, "--gaps", DATA / "sm_90.cubin").splitlines()]
    fewest = {tuple(line[2:6:3]): int(line[6]) for line in gaps if line[0] == "gap" and line[4] in ("R", "UR")}
    assert fewest["IMAD", "float32"] == 4
    assert fewest["UIADD3", "uniform"] == 4
    with_signal = {line[2]: int(line[4]) for line in gaps if line[0] == "signals"}
    assert with_signal["LDG"] > 0 and with_signal["IMAD"] == 0


def test_modules_of_a_fatbin(program):
    assert decode.run(program, DATA / "zstd.fatbin").startswith("module\tsm_80\t")
