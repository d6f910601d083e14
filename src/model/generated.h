/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says which Python files a package wrote while the program ran. Nobody typed them, so they are
 * not your code. A file is not generated only because it lies in a temporary folder. One of these
 * must be true for it:
 *   - PyTorch's compiler gave it its name (plumb_generated_by_inductor), or it lies in a folder of
 *     that compiler (`torchinductor_…`) or of Triton (`.triton`).
 *   - Its name begins as TensorFlow's and PyTorch's own generated modules do
 *     (`__autograph_generated_file…`, `_remote_module_…`).
 *   - Its name can be no name of a module, because it has another dot, and ends as Python's
 *     tempfile ends names: `torch_geometric.nn.conv.gcn_conv_GCNConv_propagate_etx2fnc3.py`.
 *   - It lies in a temporary folder, and has a name that tempfile chose, or is in a folder with
 *     such a name: `/tmp/tmpa_8x01qk/a.py`.
 */
#ifndef PLUMB_MODEL_GENERATED_H
#define PLUMB_MODEL_GENERATED_H

#include <stdbool.h>
#include <stddef.h>

enum plumb_generated {
	PLUMB_NOT_GENERATED,
	PLUMB_GENERATED_NAME,   /* by its name, or by the folder of its generator */
	PLUMB_GENERATED_FOLDER, /* by the temporary folder that it lies in */
};
enum plumb_generated plumb_generated_file(const char *file);

/* Has FILE a name that PyTorch's compiler (Inductor) gives to the Python files it generates: "c",
 * its hash in base 32, ".py"? */
bool plumb_generated_by_inductor(const char *file);

/* How many bytes of FILE name a folder for temporary files, with the slash behind it; 0: it lies in
 * none. */
size_t plumb_generated_temporary(const char *file);

#endif
