/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of Rust's functions as people write them, of both kinds that compilers make: the older one
 * looks like C++ (`_ZN4core3fmt5write17h0123456789abcdefE`), the newer one begins with `_R` (RFC
 * 2603). The hashes that tell versions of a crate apart are left out, and so is what follows a
 * symbol (`.llvm.1234`).
 */
#ifndef PLUMB_CLI_DEMANGLE_RUST_H
#define PLUMB_CLI_DEMANGLE_RUST_H

/* Malloced; NULL: SYMBOL is none of Rust's, is damaged, or its name is longer than 64 KiB. */
char *plumb_demangle_rust(const char *symbol);

#endif
