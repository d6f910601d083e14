/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The case `traffic`: four GPUs of which each writes to the next one. An array of pointers lies on
 * GPU 3, and all others read it for each update. One GPU passes on a buffer to another as it came,
 * counters of two GPUs lie on one line of memory, and of a large object hardly anything is touched.
 * Included by profiles.h, after cases.h.
 */
#ifndef PLUMB_TESTS_TRAFFIC_H
#define PLUMB_TESTS_TRAFFIC_H

#define TRAFFIC_DEVICES 4

struct traffic {
	struct sample *s;
	uint32_t devices[TRAFFIC_DEVICES];
	uint32_t main, kernel;
};

static uint32_t
traffic_object(struct traffic *t, uint32_t device, uint32_t line, const char *name, int64_t bytes,
               int64_t touched)
{
	struct plumb_object object = {
		.context = case_python(t->s, t->main, "setup", "/home/ada/bfs.py", line),
		.process = t->s->process,
		.device = t->devices[device],
		.kind = PLUMB_OBJECT_DEVICE,
		.name = name ? sample_text(t->s, name) : PLUMB_NONE,
		.within = PLUMB_NONE,
		.allocations = 1,
		.bytes = bytes,
		.most = bytes,
		.touched_bytes = touched,
		.touchable_bytes = bytes,
	};

	return plumb_builder_object(t->s->b, &object);
}

static void
traffic_access(struct traffic *t, uint32_t kind, uint32_t initiator, uint32_t owner,
               uint32_t object, int64_t offset, int64_t width, uint64_t accesses, int64_t warps)
{
	bool reads = kind == PLUMB_ACCESS_LOAD;
	uint32_t from = t->devices[reads ? owner : initiator];
	uint32_t to = t->devices[reads ? initiator : owner];

	plumb_builder_transfer(t->s->b, &(struct plumb_transfer_row){
						.context = t->kernel,
						.process = t->s->process,
						.kind = kind,
						.route = PLUMB_ROUTE_PEER,
						.initiator = t->devices[initiator],
						.ends = { from + 1, to + 1 },
						.from_object = reads ? object : PLUMB_NONE,
						.to_object = reads ? PLUMB_NONE : object,
						.function = 0,
						.offset = offset,
						.width = width,
						.accesses = accesses,
						.warps = warps,
						.bytes = (int64_t)accesses * width,
					});
}

/* COUNT copies of BYTES. */
static void
traffic_copy(struct traffic *t, uint32_t line, uint32_t from, uint32_t to, uint32_t from_object,
             uint32_t to_object, uint64_t count, int64_t bytes)
{
	struct sample *s = t->s;
	uint32_t context =
		sample_at(s, case_python(s, t->main, "exchange", "/home/ada/bfs.py", line),
	                  PLUMB_FRAME_COPY, "copy device\xe2\x86\x92peer device", NULL, 0, 0);
	struct plumb_ends ends = { t->devices[from] + 1, t->devices[to] + 1 };
	struct plumb_transfer_row row = {
		.context = context,
		.process = s->process,
		.kind = PLUMB_ACCESS_COPY,
		.route = PLUMB_ROUTE_COPY_ENGINE,
		.initiator = t->devices[from],
		.ends = ends,
		.from_object = from_object,
		.to_object = to_object,
		.function = PLUMB_NONE,
		.offset = PLUMB_UNKNOWN,
		.width = PLUMB_UNKNOWN,
		.accesses = count,
		.warps = PLUMB_UNKNOWN,
		.bytes = (int64_t)count * bytes,
	};
	struct plumb_value value = { context,   PLUMB_METRIC_GPU_COPY_BYTES,
		                     s->stream, (int64_t)count * bytes,
		                     count,     bytes,
		                     bytes,     (double)bytes,
		                     0,         ends };

	plumb_builder_transfer(s->b, &row);
	plumb_builder_value(s->b, &value);
	value.metric = PLUMB_METRIC_GPU_COPY_TIME; /* 100 GB/s */
	value.min = value.max = bytes / 100;
	value.sum = (int64_t)count * value.min;
	value.mean = (double)value.min;
	plumb_builder_value(s->b, &value);
}

static void
traffic_code(struct traffic *t)
{
	static const struct {
		int64_t offset;
		uint32_t line;
	} lines[] = { { 0x00, 60 }, { 0x40, 61 }, { 0xa0, 72 }, { 0xb0, 75 } };
	struct sample *s = t->s;

	plumb_builder_code_object(s->b,
	                          &(struct plumb_code_object){ .process = s->process,
	                                                       .kind = sample_text(s, "cubin"),
	                                                       .path = sample_text(s, "bfs.cubin"),
	                                                       .build_id = PLUMB_NONE,
	                                                       .hash = PLUMB_NONE,
	                                                       .bytes = 4096 });
	plumb_builder_code_function(
		s->b, &(struct plumb_code_function){ .object = 0,
	                                             .name = sample_text(s, "bfs"),
	                                             .architecture = sample_text(s, "sm_90"),
	                                             .is_kernel = 1,
	                                             .bytes = 512,
	                                             .registers = 32,
	                                             .stack_bytes = 0,
	                                             .shared_bytes = 0 });
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		plumb_builder_code_line(
			s->b, &(struct plumb_code_line){ .function = 0,
		                                         .offset = lines[i].offset,
		                                         .file = sample_text(s, "/home/ada/bfs.cu"),
		                                         .line = lines[i].line,
		                                         .inlined = PLUMB_NONE });
}

static void
traffic_bin(struct traffic *t, uint32_t object, uint32_t device, int64_t offset, int64_t width,
            uint64_t accesses)
{
	plumb_builder_object_bin(t->s->b, &(struct plumb_object_bin){ object, t->devices[device],
	                                                              PLUMB_ACCESS_STORE, offset,
	                                                              width, accesses });
}

static void
case_traffic(struct sample *s)
{
	struct traffic t = { .s = s };
	uint32_t queues[TRAFFIC_DEVICES], pointers, counters, large, stage;

	case_start(s);
	t.devices[0] = s->device;
	for (uint32_t i = 1; i < TRAFFIC_DEVICES; i++) {
		struct plumb_device device = *plumb_builder_get_device(s->b, s->device);
		char uuid[48];

		snprintf(uuid, sizeof uuid, "GPU-01234567-89ab-cdef-0123-456789abcde%" PRIu32, i);
		device.uuid = sample_text(s, uuid);
		device.ordinal = i;
		t.devices[i] = plumb_builder_device(s->b, &device);
	}
	for (uint32_t i = 0; i < TRAFFIC_DEVICES; i++)
		for (uint32_t k = i + 1; k < TRAFFIC_DEVICES; k++)
			plumb_builder_device_link(
				s->b,
				&(struct plumb_device_link){
					.uuid = plumb_builder_get_device(s->b, t.devices[i])->uuid,
					.peer = plumb_builder_get_device(s->b, t.devices[k])->uuid,
					.kind = PLUMB_LINK_NVSWITCH,
					.path = PLUMB_NONE,
					.links = 18,
					.generation = PLUMB_UNKNOWN,
					.bytes_per_second = 478125000000,
					.peer_access = 1 });
	t.main = case_python(s, 0, "main", "/home/ada/bfs.py", 90);
	t.kernel = case_kernel(s, case_python(s, t.main, "search", "/home/ada/bfs.py", 44), "bfs",
	                       CASE_MS, 10, 0);
	plumb_builder_environment(s->b, PLUMB_NONE, "traffic.mode", "full");
	plumb_builder_ledger(s->b, s->process, PLUMB_SOURCE_ACCESS, PLUMB_FATE_RECEIVED, PLUMB_NONE,
	                     60000000);
	plumb_builder_ledger(s->b, s->process, PLUMB_SOURCE_ACCESS, PLUMB_FATE_UNKNOWN_LAYOUT,
	                     sample_text(s, "tensor copies"), 12);
	traffic_code(&t);
	pointers = traffic_object(&t, 3, 17, "flag_ptrs", 32, 32);
	counters = traffic_object(&t, 0, 19, "counters", 4096, 256);
	large = traffic_object(&t, 2, 21, NULL, 1 << 28, the_case.touched);
	stage = traffic_object(&t, 1, 23, "stage", 1 << 20, 1 << 20);
	for (uint32_t i = 0; i < TRAFFIC_DEVICES; i++)
		queues[i] = traffic_object(&t, i, 12, NULL, 1 << 20, 1 << 20);
	for (uint32_t i = 0; i < TRAFFIC_DEVICES; i++) {
		uint32_t after = (i + 1) % TRAFFIC_DEVICES;

		traffic_access(&t, PLUMB_ACCESS_STORE, i, after, queues[after], 0x40, 4, 1 << 24,
		               1 << 19);
		if (i < 3)
			traffic_access(&t, PLUMB_ACCESS_LOAD, i, 3, pointers, 0xa0, 8,
			               the_case.pointer_loads,
			               (int64_t)(the_case.pointer_loads / the_case.pointer_lanes));
	}
	for (uint32_t i = 0; i < 16; i++)
		traffic_bin(&t, counters, i % 2, i * the_case.counter_step, 4, 1000);
	traffic_access(&t, PLUMB_ACCESS_STORE, 1, 0, counters, 0xb0, 4, 8000, 8000);
	traffic_bin(&t, large, 2, 0, 1 << 20, 5);
	traffic_copy(&t, 50, 0, 1, PLUMB_NONE, stage, 10, the_case.relayed);
	traffic_copy(&t, 51, 1, 2, stage, large, 10, the_case.relayed);
}

#endif
