// SPDX-License-Identifier: Apache-2.0

// Native frames of a program of Go: C code that it calls runs on a stack of its own.
package main

/*
#include <stdint.h>
#include <stdlib.h>
int cudaLaunchKernel(const char *name, uint64_t ns);
*/
import "C"

import "time"

type field struct {
	values []float32
	name   *C.char
}

//go:noinline
func (f *field) relax(times int) {
	for i := 0; i < times; i++ {
		C.cudaLaunchKernel(f.name, 30000) // RELAX
	}
}

//go:noinline
func step(f *field) {
	f.relax(2)
}

func main() {
	f := &field{make([]float32, 16), C.CString("_Z6smoothPKfi")}
	for i := 0; i < 10; i++ {
		step(f)
	}
	time.Sleep(500 * time.Millisecond) // Go ends without the exit handlers that would fetch the last records
}
