/* SPDX-License-Identifier: Apache-2.0 */
/* A call from each of several places at the same depth, for native_memo.py; built twice, with two
 * build ids. */
typedef int launch_function(const char *, unsigned long, unsigned, unsigned);

#define PLACE(number)                                                                              \
	case number:                                                                               \
		result = launch(name, 10, 0, 0) + number;                                          \
		break;

__attribute__((visibility("default"), noinline)) int
sites(launch_function *launch, const char *name, int place)
{
	volatile int result = 0;
	switch (place) {
		PLACE(0)
		PLACE(1)
		PLACE(2)
		PLACE(3)
		PLACE(4)
		PLACE(5)
		PLACE(6)
		PLACE(7)
		PLACE(8)
		PLACE(9)
		PLACE(10)
		PLACE(11)
	}
	return result;
}
