/* SPDX-License-Identifier: Apache-2.0 */
/* A library that calls back; loaded, stripped and unloaded by shapes.cc. */
__attribute__((visibility("default"), noinline)) void
run(void (*function)(void), int depth)
{
	volatile char room[100];
	room[depth] = 1;
	if (depth)
		run(function, depth - 1);
	else
		function();
	room[0] = room[depth];
}
