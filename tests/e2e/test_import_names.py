# SPDX-License-Identifier: Apache-2.0
"""Names of imported kernels: shown as people write them, and kept as the trace has them."""
import pytest
from conftest import PLUMB, run_command
from importing import imported
from kineto_traces import call, document, kernel

NAMES = {
    "_Z3addPfi": "add(float*, int)",
    "_Z3addPfi.kd": "add(float*, int)",
    "_Z3addPfi [clone .kd]": "add(float*, int)",
    "_Z3addPfi.kd [clone .kd]": "add(float*, int)",
    "_ZN2at6native4fillILi4EEEvPf.kd": "void at::native::fill<4>(float*)",
    "_Z3addPfi [clone .isra.0]": "add(float*, int) [clone .isra.0]",
    "add(float*, int) [clone .kd]": "add(float*, int)",
    "triton_poi_fused_add.kd": "triton_poi_fused_add",
    "Cijk_Ailk_Bljk_SB_MT128x64x16": "Cijk_Ailk_Bljk_SB_MT128x64x16",
    "_Zzz": "_Zzz",
    "i": "i",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_of_pytorch(name, tmp_path):
    trace = document(call(1, 10), kernel(1, 20, 5, name))
    made = imported(tmp_path, trace)
    shown, = made.report("--by", "kernel")["rows"]
    assert shown["name"] == NAMES[name]
    assert made.query("SELECT name FROM frames WHERE kind = 'kernel'") == [(name,)]
    done = run_command(PLUMB, "report", tmp_path / "out-0", "--by", "kernel", "--csv")
    assert done.returncode == 0 and NAMES[name] in done.stdout


def test_an_amd_table(tmp_path):
    made = imported(tmp_path, '"Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp",'
                              '"End_Timestamp"\n"KERNEL_DISPATCH",1,1,1,"_Z3addPfi.kd",1,100,200\n')
    assert [node.name for node in made.profile.kernels] == ["add(float*, int)"]
    assert made.query("SELECT name FROM frames WHERE kind = 'kernel'") == [("_Z3addPfi",)]
