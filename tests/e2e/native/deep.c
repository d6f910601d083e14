/* SPDX-License-Identifier: Apache-2.0 */
/* Calls FUNCTION below DEPTH calls of its own, for native_calls.py. */
__attribute__((visibility("default"), noinline)) int
deep(int (*function)(const char *, unsigned long, unsigned, unsigned), const char *name, int depth)
{
	volatile int below = depth ? deep(function, name, depth - 1) : function(name, 10, 0, 0);
	return below;
}
