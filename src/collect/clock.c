/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/clock.h"

#include <string.h>

#include "collect/process.h"

uint64_t plumb_tick_scale;
uint64_t plumb_clock_cost;

static void
measure_cost(void)
{
	enum { READINGS = 64 };
	uint64_t start = plumb_now(), end = start;
	for (int i = 0; i < READINGS; i++)
		end = plumb_now();
	plumb_clock_cost = (end - start) / READINGS;
}

#if defined(__x86_64__)
/* A reading of both clocks, the tightest of a few. */
static void
read_both(uint64_t *ticks, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;
	for (int i = 0; i < 8; i++) {
		uint64_t before = __builtin_ia32_rdtsc();
		uint64_t now = plumb_now();
		uint64_t width = __builtin_ia32_rdtsc() - before;
		if (width < best) {
			best = width;
			*ticks = before + width / 2;
			*ns = now;
		}
	}
}

void
plumb_clock_calibrate(void)
{
	static const char source[] =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	char name[32];
	uint64_t ticks[2], ns[2];
	measure_cost();
	plumb_read_file(source, name, sizeof name);
	if (strncmp(name, "tsc", 3))
		return;
	/* A millisecond against readings that are off by some 20 ns: right to 0.005 %. */
	read_both(&ticks[0], &ns[0]);
	while (plumb_now() - ns[0] < 1000000)
		;
	read_both(&ticks[1], &ns[1]);
	if (ticks[1] > ticks[0])
		plumb_tick_scale =
			(uint64_t)((((__uint128_t)(ns[1] - ns[0])) << 32) / (ticks[1] - ticks[0]));
}
#elif defined(__aarch64__)
void
plumb_clock_calibrate(void)
{
	uint64_t hertz;
	measure_cost();
	__asm__("mrs %0, cntfrq_el0" : "=r"(hertz));
	if (hertz)
		plumb_tick_scale = (uint64_t)(((__uint128_t)1000000000 << 32) / hertz);
}
#else
void
plumb_clock_calibrate(void)
{
	measure_cost();
}
#endif
