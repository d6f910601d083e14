/* SPDX-License-Identifier: Apache-2.0 */
/* Settling: devices of several processes, their clocks and busy time, the newest work,
 * collectives. */
#include "settle_regions.h"

#include <math.h>

/* A process with one device of UUID, whose totals begin at START with COUNT pieces. */
static void
gpu_region(int folder, const char *name, uint32_t pid, int rank, uint8_t uuid, uint64_t start,
           unsigned count)
{
	begin(folder, name);
	process(pid, rank);
	plumb_id d = device(0, uuid);
	clock_at(0, 100 * SECOND, EPOCH + 100 * SECOND);
	clock_at(0, 110 * SECOND, EPOCH + 110 * SECOND);
	plumb_id s = stream(d, 7);
	plumb_id line = node(0, PLUMB_FRAME_PYTHON, "main");
	plumb_id kernel = node(node(line, PLUMB_FRAME_GPU_API, "cuLaunchKernel"),
	                       PLUMB_FRAME_KERNEL, "_Z3foov");
	value(kernel, s, PLUMB_METRIC_GPU_TIME, 1000000, 1000000);
	total(d, start, count);
}

static void
test_devices_join(void **state)
{
	(void)state;
	/* Two processes on one GPU, half a millisecond apart; one on its own. */
	gpu_region(0, "1", 1, 0, 0xab, 101 * SECOND, 3);
	end();
	gpu_region(0, "2", 2, 1, 0xab, 101 * SECOND + 500000, 3);
	end();
	gpu_region(1, "3", 3, 2, 0xcd, 105 * SECOND, 2);
	end();
	assert_int_equal(settle(2), 0);
	assert_int_equal(profile.devices_count, 2);
	const struct plumb_device *d = &profile.devices[0];
	assert_string_equal(plumb_text(&profile, d->uuid),
	                    "GPU-abababab-abab-abab-abab-abababababab");
	assert_int_equal(d->kernels, 6);
	assert_int_equal(d->kernel_ns, 6000000);
	assert_int_equal(d->busy_ns, 3 * 1500000); /* the union */
	assert_int_equal(d->contended_ns, 3 * 500000);
	assert_int_equal(profile.device_processes_count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct plumb_device_process *share = &profile.device_processes[i];
		assert_int_equal(share->device, i == 2);
		assert_int_equal(share->process, i);
		assert_int_equal(share->busy_ns, i == 2 ? 2000000 : 3000000);
	}
	assert_int_equal(profile.devices[1].contended_ns, 0);
	assert_int_equal(d->first_ns, 101 * SECOND);
	assert_int_equal(d->last_ns, 103 * SECOND + 1500000);
	assert_true(d->rank == PLUMB_UNKNOWN);
	assert_true(d->clock_khz == PLUMB_UNKNOWN && d->memory_bytes == PLUMB_UNKNOWN);
	assert_int_equal(d->multiprocessors, 132);
	assert_null(environment(PLUMB_NONE, "gpu.busy.GPU-abababab-abab-abab-abab-abababababab"));
	assert_int_equal(profile.devices[1].busy_ns, 2000000);
	assert_int_equal(profile.devices[1].rank, 2);
	/* The three ranks' kernels are one context on three tracks. */
	uint32_t kernel = find("main|cuLaunchKernel|demangled _Z3foov");
	assert_int_equal(stat_of(kernel, PLUMB_METRIC_GPU_TIME).count, 6);
	assert_int_equal(profile.processes_count, 3);
	assert_int_equal(profile.processes[2].rank, 2);
	assert_string_equal(plumb_text(&profile, profile.processes[2].host), "node");
	assert_int_equal(ledger(PLUMB_SOURCE_KERNEL, PLUMB_FATE_NO_PYTHON), 0);
	done();
}

static void
test_busy_not_exact(void **state)
{
	(void)state;
	gpu_region(0, "1", 1, 0, 0xab, 101 * SECOND, 3);
	end();
	gpu_region(0, "2", 2, 0, 0xab, 101 * SECOND + 500000, 3);
	plumb_id id = 0;
	struct plumb_record_device_total *t = NULL;
	/* Older work was folded: how it lies to the other process's is not known any more. */
	for (id = 1; !t; id++) {
		struct plumb_record *r = plumb_region_at(&region, id);
		if (r->type == PLUMB_RECORD_DEVICE_TOTAL && r->length == sizeof *t)
			t = (struct plumb_record_device_total *)r;
	}
	t->busy_ns = 7000;
	end();
	assert_int_equal(settle(1), 0);
	assert_int_equal(profile.devices[0].busy_ns, 6000000 + 7000);
	assert_int_equal(profile.devices[0].rank, 0);
	assert_true(profile.devices[0].contended_ns == PLUMB_UNKNOWN);
	assert_int_equal(profile.device_processes[0].busy_ns, 3000000);
	assert_int_equal(profile.device_processes[1].busy_ns, 3007000);
	assert_non_null(
		environment(PLUMB_NONE, "gpu.busy.GPU-abababab-abab-abab-abab-abababababab"));
	done();
}

static void
test_torn_total(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, 0);
	plumb_id d = device(0, 1);
	plumb_id s = stream(d, 7);
	clock_at(0, 100 * SECOND, EPOCH + 100 * SECOND);
	value(node(0, PLUMB_FRAME_KERNEL, "k"), s, PLUMB_METRIC_GPU_TIME, 10, 20);
	value(node(0, PLUMB_FRAME_SET, "set"), s, PLUMB_METRIC_GPU_COPY_TIME, 1, 2);
	total(d, 101 * SECOND, 2)->sequence = 3;
	end();
	assert_int_equal(settle(1), 0);
	/* What the values add up to; when it was is not known. */
	assert_int_equal(profile.devices[0].kernels, 2);
	assert_int_equal(profile.devices[0].kernel_ns, 30);
	assert_int_equal(profile.devices[0].sets, 2);
	assert_int_equal(profile.devices[0].copies, 0);
	assert_true(profile.devices[0].busy_ns == PLUMB_UNKNOWN);
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_TORN), 1);
	assert_int_equal(ledger(PLUMB_SOURCE_KERNEL, PLUMB_FATE_NO_PYTHON), 2);
	done();
}

static void
test_work_ring(void **state)
{
	const unsigned capacity = 8, written = 11;

	(void)state;
	begin(0, "1");
	process(1, 0);
	plumb_id d = device(0, 1), s = stream(d, 7), k = node(0, PLUMB_FRAME_KERNEL, "k");
	/* A clock that runs 100 ppm fast. */
	clock_at(d, 100 * SECOND, EPOCH);
	clock_at(d, 101 * SECOND, EPOCH + SECOND + 100000);
	clock_at(d, 102 * SECOND, EPOCH + 2 * SECOND + 200000);
	value(k, s, PLUMB_METRIC_GPU_TIME, 10, 20);
	struct plumb_record_work_ring *ring =
		record(&arena, PLUMB_RECORD_WORK_RING,
	               sizeof *ring + capacity * sizeof(struct plumb_work));
	struct plumb_work *work = (struct plumb_work *)(ring + 1);
	ring->device = d;
	ring->capacity = capacity;
	for (unsigned i = 0; i < written; i++)
		work[i % capacity] = (struct plumb_work){ k, s, EPOCH + (written - i) * 100020,
			                                  EPOCH + (written - i) * 100020 + 7 };
	ring->written = written;
	work[9 % capacity].stream = k; /* not a stream */
	struct plumb_record_series *series = RECORD(SERIES, series);
	series->device = d;
	series->start = EPOCH;
	series->width = 1000;
	series->bins[2].busy_ns = 500;
	series->bins[2].kernels = 3;
	end();
	assert_int_equal(settle(1), 0);
	assert_int_equal(profile.work_count, 7);
	assert_int_equal(profile.work[0].start_ns, 100 * SECOND + 1 * 100020 - 10);
	assert_int_equal(profile.work[0].context, find("k"));
	for (uint32_t i = 1; i < profile.work_count; i++)
		assert_true(profile.work[i].start_ns > profile.work[i - 1].start_ns);
	assert_int_equal(profile.series_count, 3);
	assert_int_equal(profile.series[2].start_ns, 100 * SECOND + 2000);
	assert_int_equal(profile.series[2].kernels, 3);
	/* The GPU's clock and the time of day. */
	assert_int_equal(profile.clocks_count, 2);
	for (int i = 0; i < 2; i++) {
		const struct plumb_clock *c = &profile.clocks[i];
		assert_int_equal(c->readings, 3);
		assert_true(c->residual_ns <= 50);
		if (c->device == PLUMB_NONE)
			assert_true(c->offset_ns == -(int64_t)EPOCH);
		else
			assert_true(c->slope < -0.99e-4 && c->slope > -1.01e-4);
	}
	done();
}

/* A series of the device D whose bin 3 has two samples of 2 ms in all, with a mean of 5. */
static struct plumb_record_counter_series *
counter_series(plumb_id d, const char *name)
{
	plumb_id name_id = text(name), unit = text("byte/s");
	struct plumb_record_counter_series *series = RECORD(COUNTER_SERIES, counter_series);
	series->device = d;
	series->name = name_id;
	series->unit = unit;
	series->start = EPOCH;
	series->width = 1000000;
	series->bins[3] = (struct plumb_counter_bin){
		.sum = 1e7, .ns = 2000000, .least = 4, .most = 6, .samples = 2
	};
	return series;
}

static void
test_counter_series(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, 0);
	plumb_id d = device(0, 1), s = stream(d, 7);
	clock_at(d, 100 * SECOND, EPOCH);
	clock_at(d, 101 * SECOND, EPOCH + SECOND);
	value(node(0, PLUMB_FRAME_KERNEL, "k"), s, PLUMB_METRIC_GPU_TIME, 10, 20);
	counter_series(d, "good");
	counter_series(d, "torn")->sequence = 1;
	counter_series(d, "empty")->width = 0;
	counter_series(d, "above")->bins[3].sum = 1.3e7;
	counter_series(d, "below")->bins[3].sum = 0.7e7;
	counter_series(d, "timeless")->bins[3].ns = 0;
	counter_series(d, "unknown")->bins[3].most = (float)NAN;
	counter_series(d, "wide")->width = 1ull << 60;
	counter_series(s, "a stream's");
	end();
	assert_int_equal(settle(1), 0);
	assert_int_equal(profile.counter_series_count, 1);
	const struct plumb_counter_series_bin *bin = &profile.counter_series[0];
	assert_string_equal(plumb_text(&profile, bin->metric), "good");
	assert_string_equal(plumb_text(&profile, bin->unit), "byte/s");
	assert_true(bin->device == 0 && bin->process == 0);
	assert_int_equal(bin->start_ns, 100 * SECOND + 3000000);
	assert_int_equal(bin->width_ns, 1000000);
	assert_true(bin->samples == 2 && bin->sampled_ns == 2000000);
	assert_true(bin->min == 4 && bin->mean == 5 && bin->max == 6);
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_TORN), 1);
	assert_int_equal(ledger(PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED), 6);
	done();
}

static void
test_clock_outlier(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, 0);
	plumb_id d = device(0, 1);
	for (uint64_t i = 0; i < 10; i++)
		clock_at(0, (100 + i) * SECOND, EPOCH + i * SECOND);
	/* Interrupted between its clocks. */
	struct plumb_record_clock *c = RECORD(CLOCK, clock);
	c->monotonic = 105 * SECOND + 5000000;
	c->gpu = EPOCH + 5 * SECOND;
	c->uncertainty = 10000000;
	value(node(0, PLUMB_FRAME_KERNEL, "k"), stream(d, 7), PLUMB_METRIC_GPU_TIME, 10, 20);
	total(d, 0, 1);
	end();
	assert_int_equal(settle(1), 0);
	assert_true(profile.devices[0].first_ns >= (int64_t)(100 * SECOND - 100));
	assert_true(profile.devices[0].first_ns <= (int64_t)(100 * SECOND + 100));
	done();
}

static void
test_no_clock(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, 0);
	plumb_id d = device(0, 0); /* without a UUID, too */
	value(node(0, PLUMB_FRAME_KERNEL, "k"), stream(d, 7), PLUMB_METRIC_GPU_TIME, 10, 20);
	total(d, SECOND, 2);
	end();
	assert_int_equal(settle(1), 0);
	assert_int_equal(profile.devices[0].uuid, PLUMB_NONE);
	assert_int_equal(profile.devices[0].busy_ns, 2000000);
	assert_true(profile.devices[0].first_ns == PLUMB_UNKNOWN);
	done();
}

/* A kernel of NCCL stands under its operation, wherever it was launched from. */
static void
test_collectives(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, 0);
	plumb_id t = thread(1), line = node(0, PLUMB_FRAME_PYTHON, "main");
	plumb_id call = node(line, PLUMB_FRAME_GPU_API, "cuLaunchKernelEx");
	value(node(call, PLUMB_FRAME_KERNEL, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"), t,
	      PLUMB_METRIC_GPU_TIME, 1, 10);
	value(node(call, PLUMB_FRAME_KERNEL, "ncclDevKernel_AllReduce_Sum_f16_RING_LL"), t,
	      PLUMB_METRIC_GPU_TIME, 1, 5);
	value(node(call, PLUMB_FRAME_KERNEL, "gemm"), t, PLUMB_METRIC_GPU_TIME, 1, 1);
	value(node(0, PLUMB_FRAME_KERNEL, "ncclDevKernel_SendRecv"), t, PLUMB_METRIC_GPU_TIME, 1,
	      2);
	plumb_id own = node(call, PLUMB_FRAME_COLLECTIVE, "all_reduce");
	value(node(own, PLUMB_FRAME_KERNEL, "ncclDevKernel_Generic"), t, PLUMB_METRIC_GPU_TIME, 1,
	      3);
	end();
	assert_int_equal(settle(1), 0);
	static const char above[] = "main|cuLaunchKernelEx|AllReduce|ncclDevKernel_AllReduce";
	char path[128];
	snprintf(path, sizeof path, "%s_Sum_f32_RING_LL", above);
	assert_int_equal(stat_of(find(path), PLUMB_METRIC_GPU_TIME).sum, 11);
	snprintf(path, sizeof path, "%s_Sum_f16_RING_LL", above);
	assert_int_equal(stat_of(find(path), PLUMB_METRIC_GPU_TIME).sum, 6);
	assert_true(find("main|cuLaunchKernelEx|gemm") != PLUMB_NONE);
	assert_true(find("SendRecv|ncclDevKernel_SendRecv") != PLUMB_NONE);
	assert_true(find("main|cuLaunchKernelEx|all_reduce|ncclDevKernel_Generic") != PLUMB_NONE);
	done();
}

/* A copy's node with both its devices. */
static plumb_id
copy_node(plumb_id parent, plumb_id from, plumb_id to)
{
	plumb_id name = text("copy device→peer device");
	struct plumb_record_copy *n = RECORD(NODE, copy);

	n->node.parent = parent;
	n->node.kind = PLUMB_FRAME_COPY;
	n->node.flags = PLUMB_CONTEXT_ENDS;
	n->node.name = name;
	n->from = from;
	n->to = to;
	return plumb_region_id(&region, n);
}

static void
test_ends(void **state)
{
	(void)state;
	begin(0, "1");
	process(1, 0);
	plumb_id devices[3] = { device(0, 0xa0), device(1, 0xa1), device(2, 0xa2) };
	plumb_id s = stream(devices[0], 7);
	plumb_id call = node(0, PLUMB_FRAME_GPU_API, "cuMemcpyPeerAsync");
	value(copy_node(call, devices[0], devices[1]), s, PLUMB_METRIC_GPU_COPY_BYTES, 1, 2);
	value(copy_node(call, devices[0], devices[2]), s, PLUMB_METRIC_GPU_COPY_BYTES, 4, 8);
	/* Its destination is no device; its flag is of a node that is too short; of a kernel. */
	value(copy_node(call, devices[1], s), s, PLUMB_METRIC_GPU_COPY_BYTES, 16, 16);
	value(node_in(&arena, call, PLUMB_FRAME_COPY, "copy device→peer device",
	              PLUMB_CONTEXT_ENDS),
	      s, PLUMB_METRIC_GPU_COPY_BYTES, 32, 32);
	value(node_in(&arena, call, PLUMB_FRAME_KERNEL, "k", PLUMB_CONTEXT_ENDS), s,
	      PLUMB_METRIC_GPU_TIME, 1, 1);
	end();
	assert_int_equal(settle(1), 0);
	uint32_t context = find("cuMemcpyPeerAsync|copy device→peer device");
	assert_int_equal(stat_of(context, PLUMB_METRIC_GPU_COPY_BYTES).sum, 15 + 32 + 64);
	static const struct {
		uint32_t from, to; /* + 1 */
		int64_t sum;
	} expected[] = { { 0, 0, 64 }, { 1, 2, 3 }, { 1, 3, 12 }, { 2, 0, 32 } };
	uint32_t found = 0;
	for (uint32_t i = 0; i < profile.values_count; i++) {
		const struct plumb_value *v = &profile.values[i];
		if (v->context != context) {
			assert_true(!v->ends.from && !v->ends.to);
			continue;
		}
		assert_int_equal(v->ends.from, expected[found].from);
		assert_int_equal(v->ends.to, expected[found].to);
		assert_int_equal(v->sum, expected[found++].sum);
	}
	assert_int_equal(found, 4);
	done();
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_devices_join), T(test_busy_not_exact), T(test_torn_total),
		T(test_work_ring),    T(test_clock_outlier),  T(test_no_clock),
		T(test_collectives),  T(test_ends),           T(test_counter_series),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
