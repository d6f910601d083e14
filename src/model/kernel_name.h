/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel's name in the order in which it tells something. Libraries launch most of their work by
 * a few templates, so a hundred kernels have nearly the same name:
 *
 *	void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>,
 *	std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)
 *
 * Here what is computed comes first, and the template that runs it last, without what the types of
 * parameters repeat and without namespaces:
 *
 *	FillFunctor<float> (vectorized_elementwise_kernel<4, array<char*, 1>>)
 *
 * A lambda is called by the function that it is written in. A name of any other kind (Triton's,
 * cuBLAS's, Tensile's, a C function's) stays as it is, and so does one that cannot be read. Two
 * names may become the same.
 */
#ifndef PLUMB_MODEL_KERNEL_NAME_H
#define PLUMB_MODEL_KERNEL_NAME_H

/* NAME is demangled. Malloced; NULL: no memory. */
char *plumb_kernel_name_compact(const char *name);

#endif
