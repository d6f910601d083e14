/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The analyses: each finds its case, at the right place and with the right numbers; not on the
 * other side of each threshold; and nothing where there is nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../golden/profiles.h"
#include "analyze/analyze.h"
#include "base/json.h"
#include "failing_malloc.h"
#include "store/store.h"

static void
analyzed(const char *name, const char *thresholds, struct plumb_profile *profile)
{
	struct plumb_analyze_options options = { .thresholds = thresholds };
	struct plumb_error error = { 0 };

	*profile = (struct plumb_profile){ 0 };
	assert_true(sample_make(name, profile));
	if (plumb_analyze(profile, &options, &error) < 0)
		fail_msg("%s", error.message);
}

/* The finding whose id begins with PREFIX; NULL: there is none. */
static const struct plumb_finding *
find(const struct plumb_profile *p, const char *prefix)
{
	for (uint32_t i = 0; i < p->findings_count; i++)
		if (!strncmp(plumb_text(p, p->findings[i].id), prefix, strlen(prefix)))
			return &p->findings[i];
	return NULL;
}

static const struct plumb_finding *
must_find(const struct plumb_profile *p, const char *prefix)
{
	const struct plumb_finding *found = find(p, prefix);

	if (!found)
		fail_msg("no finding %s", prefix);
	assert_true(plumb_json_valid(plumb_text(p, found->evidence)));
	assert_true(found->severity >= 1 && found->severity <= 3);
	assert_true(found->confidence >= 0 && found->confidence <= 1);
	assert_true(found->saving_ns == PLUMB_UNKNOWN || found->saving_ns >= 0);
	assert_true(strlen(plumb_text(p, found->advice)) > 20);
	return found;
}

static void
assert_has(const struct plumb_profile *p, uint32_t text, const char *part)
{
	if (!strstr(plumb_text(p, text), part))
		fail_msg("\"%s\" is not in: %s", part, plumb_text(p, text));
}

static void
assert_at(const struct plumb_profile *p, const struct plumb_finding *f, uint32_t kind,
          const char *name)
{
	const struct plumb_frame *frame = plumb_context_frame(p, f->context);

	assert_int_equal(frame->kind, kind);
	assert_string_equal(plumb_text(p, frame->name), name);
}

/* Does the sample NAME, as `the_case` stands, have a finding PREFIX? */
static bool
has(const char *name, const char *thresholds, const char *prefix)
{
	struct plumb_profile p;
	bool found;

	analyzed(name, thresholds, &p);
	found = find(&p, prefix) != NULL;
	plumb_profile_free(&p);
	return found;
}

/* Two processes on one device: a device that a sample has, told to be shared. */
static void
test_contention(void **state)
{
	struct plumb_profile p;
	const struct plumb_finding *f;

	(void)state;
	analyzed("loader", NULL, &p);
	assert_null(find(&p, "iterations-contention"));
	p.devices[0].contended_ns = p.devices[0].busy_ns / 20 - 1;
	assert_int_equal(plumb_analyze(&p, NULL, NULL), 0);
	assert_null(find(&p, "iterations-contention"));
	p.devices[0].contended_ns = p.devices[0].busy_ns / 20;
	assert_int_equal(plumb_analyze(&p, NULL, NULL), 0);
	f = must_find(&p, "iterations-contention");
	assert_has(&p, f->title, "5.0 %");
	assert_int_equal(f->saving_ns, p.devices[0].contended_ns);
	plumb_profile_free(&p);
}

static int
reset(void **state)
{
	(void)state;
	memset(&the_case, 0, sizeof the_case);
	return 0;
}

/* ---- hotspots ---- */

static void
test_hot_kernels_operators_and_lines(void **state)
{
	struct plumb_profile p;
	const struct plumb_finding *f;

	(void)state;
	analyzed("index", NULL, &p);
	f = must_find(&p, "hotspot-kernel");
	assert_at(&p, f, PLUMB_FRAME_KERNEL, "sm90_xmma_gemm_f32"); /* 40 of 71 ms */
	assert_has(&p, f->title, "56.3 %");
	assert_has(&p, f->title, "case.py:70");
	assert_has(&p, f->evidence, "\"name\":\"aten::mm\"");
	assert_int_equal(f->saving_ns, PLUMB_UNKNOWN);
	assert_null(find(&p, "hotspot-operator")); /* one hot kernel, one finding */
	assert_null(find(&p, "hotspot-line"));
	plumb_profile_free(&p);
	/* With kernels that all stay below: by operator, and by line. */
	analyzed("loss", "hotspot.share=20%", &p);
	f = must_find(&p, "hotspot-line");
	assert_has(&p, f->title, "case.py:21");
	assert_int_equal(plumb_context_frame(&p, f->context)->line, 21);
	plumb_profile_free(&p);
	assert_true(has("index", "hotspot.share=0.5633", "hotspot-kernel"));
	assert_false(has("index", "hotspot.share=0.5634", "hotspot-kernel"));
}

static void
test_layout_conversions(void **state)
{
	struct plumb_profile p;
	const struct plumb_finding *f;

	(void)state;
	analyzed("unet", NULL, &p);
	f = must_find(&p, "hotspot-layout");
	assert_int_equal(f->saving_ns, 12 * CASE_MS);
	assert_int_equal(f->severity, PLUMB_WARNING); /* 6 % of the span */
	assert_at(&p, f, PLUMB_FRAME_OPERATOR, "aten::cudnn_convolution");
	assert_has(&p, f->title, "unet.py:33");
	assert_has(&p, f->title, "19.4 %"); /* 12 of 62 ms */
	assert_has(&p, f->advice, "channels_last");
	assert_has(&p, f->evidence, "\"native\":\"cudnnConvolutionForward\"");
	assert_has(&p, f->evidence, "\"kernels\":60");
	assert_has(&p, f->evidence, "aten::convolution_backward");
	plumb_profile_free(&p);
	assert_true(has("unet", "hotspot.layout_share=19.35%", "hotspot-layout"));
	assert_false(has("unet", "hotspot.layout_share=19.36%", "hotspot-layout"));
	assert_false(has("index", "hotspot.layout_share=0", "hotspot-layout"));
}

static void
test_pageable_copies(void **state)
{
	struct plumb_profile p;
	const struct plumb_finding *f;

	(void)state;
	analyzed("copies", NULL, &p);
	f = must_find(&p, "hotspot-pageable");
	assert_int_equal(f->saving_ns, 15 * CASE_MS);
	assert_int_equal(f->severity, PLUMB_WARNING);
	assert_has(&p, f->title, "case.py:50");
	assert_has(&p, f->title, "100 MiB");
	assert_has(&p, f->advice, "pin_memory=True");
	assert_has(&p, f->evidence, "\"host_wait_ns\":15000000");
	assert_has(&p, f->evidence, "\"slower_than_pinned_ns\":8000000"); /* 12 ms - 4 ms */
	plumb_profile_free(&p);
	the_case.copy_bytes = 65536; /* the_case is set now */
	assert_true(has("copies", NULL, "hotspot-pageable"));
	the_case.copy_bytes = 65535;
	assert_false(has("copies", NULL, "hotspot-pageable"));
	the_case.copy_bytes = 1048576;
	the_case.copy_wait = 20000; /* 2 ms of 200 */
	assert_true(has("copies", NULL, "hotspot-pageable"));
	the_case.copy_wait = 19999;
	assert_false(has("copies", NULL, "hotspot-pageable"));
}

static void
test_copying_kernels(void **state)
{
	struct plumb_profile p;
	const struct plumb_finding *f;

	(void)state;
	analyzed("copies", NULL, &p);
	f = must_find(&p, "hotspot-copies"); /* 8 of 48 ms */
	assert_at(&p, f, PLUMB_FRAME_OPERATOR, "aten::to");
	assert_has(&p, f->title, "case.py:63");
	assert_int_equal(f->saving_ns, 8 * CASE_MS);
	plumb_profile_free(&p);
	assert_true(has("copies", "hotspot.copy_share=16.66%", "hotspot-copies"));
	assert_false(has("copies", "hotspot.copy_share=16.67%", "hotspot-copies"));
	assert_true(has("copies", "hotspot.copy_share=16.67%", "hotspot-kernel"));
}

/* ---- the others ---- */

static void
test_fusion(void **state)
{
	struct plumb_profile p;
	const struct plumb_finding *f;

	(void)state;
	analyzed("loss", NULL, &p);
	f = must_find(&p, "fusion");
	assert_at(&p, f, PLUMB_FRAME_PYTHON, "loss_fn");
	assert_has(&p, f->title, "loss_fn (case.py:21) launches 3,000 short kernels, mean 4.00 ");
	/* six kernels become one: five of six go */
	assert_int_equal(f->saving_ns, 500 * 4000 * 5);
	assert_has(&p, f->evidence, "\"repetitions\":500");
	assert_true(f->confidence > 0.85);
	plumb_profile_free(&p);
	the_case.backward = 3; /* three become one, in each direction */
	analyzed("loss", NULL, &p);
	assert_int_equal(must_find(&p, "fusion")->saving_ns, 500 * 4000 * 4);
	plumb_profile_free(&p);
	the_case.backward = 0;
	the_case.registers = 128;
	analyzed("loss", NULL, &p);
	assert_true(must_find(&p, "fusion")->confidence < 0.75);
	plumb_profile_free(&p);
	assert_true(has("loss", "fusion.kernel_time=4001", "fusion"));
	assert_false(has("loss", "fusion.kernel_time=4us", "fusion"));
	assert_true(has("loss", "fusion.kernels=3000", "fusion"));
	assert_false(has("loss", "fusion.kernels=3001", "fusion"));
	assert_true(has("loss", "fusion.sequence=6", "fusion"));
	assert_false(has("loss", "fusion.sequence=7", "fusion"));
	assert_true(has("loss", "fusion.share=23%", "fusion")); /* 12 of 52 ms */
	assert_false(has("loss", "fusion.share=23.1%", "fusion"));
}

static void
test_balance(void **state)
{
	struct plumb_profile p;
	const struct plumb_finding *f;

	(void)state;
	analyzed("index", NULL, &p);
	f = must_find(&p, "balance");
	assert_at(&p, f, PLUMB_FRAME_OPERATOR, "aten::index");
	assert_int_equal(f->severity, PLUMB_WARNING);
	assert_int_equal(f->saving_ns, 30 * CASE_MS); /* all of it */
	assert_has(&p, f->title, "aten::index at case.py:12");
	assert_has(&p, f->title, "30.0 times its forward pass");
	assert_has(&p, f->advice, "index_select");
	assert_has(&p, f->evidence, "indexing_backward_kernel");
	plumb_profile_free(&p);
	assert_true(has("index", "balance.ratio=30", "balance"));
	assert_false(has("index", "balance.ratio=30.1", "balance"));
	assert_true(has("index", "balance.share=42%", "balance")); /* 30 of 71 ms */
	assert_false(has("index", "balance.share=43%", "balance"));
	the_case.index_backward = 2 * CASE_MS; /* as usual */
	assert_false(has("index", NULL, "balance"));
	assert_false(has("unet", NULL, "balance"));
}

static void
test_workers(void **state)
{
	struct plumb_profile p;
	const struct plumb_finding *f;

	(void)state;
	analyzed("loader", NULL, &p);
	f = must_find(&p, "latency-workers");
	assert_has(&p, f->title, "8 DataLoader workers share 4 processors, started at case.py:88");
	assert_has(&p, f->evidence, "\"cores\":4");
	assert_has(&p, f->evidence, "\"worker_processes\":8");
	assert_int_equal(f->saving_ns, 140 * CASE_MS); /* what the device idled */
	assert_int_equal(f->severity, PLUMB_SERIOUS);
	plumb_profile_free(&p);
	the_case.workers = 5;
	assert_true(has("loader", NULL, "latency-workers"));
	the_case.workers = 4;
	assert_false(has("loader", NULL, "latency-workers"));
	assert_true(has("loader", "latency.workers=0.5", "latency-workers"));
}

static void
test_loading(void **state)
{
	(void)state;
	assert_false(has("loader", NULL, "latency-loading"));
	the_case.in_loader = "__next__";
	assert_true(has("loader", NULL, "latency-loading"));
	the_case.in_loader = "<module>"; /* it is imported */
	assert_false(has("loader", NULL, "latency-loading"));
	the_case.in_loader = NULL;
}

static void
test_busy_host(void **state)
{
	struct plumb_profile p;
	const struct plumb_finding *f;

	(void)state;
	analyzed("loader", NULL, &p);
	f = must_find(&p, "latency-host");
	assert_at(&p, f, PLUMB_FRAME_PYTHON, "augment");
	assert_has(&p, f->title, "augment (case.py:40)");
	assert_int_equal(f->saving_ns, 60000 * 999); /* without its longest call */
	assert_null(find(&p, "latency-idle"));
	plumb_profile_free(&p);
	assert_true(has("loader", "latency.share=29.9%", "latency-host")); /* of 200 ms */
	assert_false(has("loader", "latency.share=30%", "latency-host"));
	assert_true(has("loader", "latency.idle=70%", "latency-host"));
	assert_false(has("loader", "latency.idle=70.1%", "latency-host"));
	the_case.workers = 0;
	the_case.augment = 10; /* then nothing explains the idle device */
	assert_true(has("loader", NULL, "latency-idle"));
	the_case.busy = 190 * CASE_MS;
	assert_false(has("loader", NULL, "latency"));
}

static void
test_stalls(void **state)
{
	(void)state;
	struct plumb_profile p;
	analyzed("stalled", NULL, &p);
	const struct plumb_finding *f = must_find(&p, "stalls-pointer-indirection-");

	assert_at(&p, f, PLUMB_FRAME_KERNEL, "walk");
	assert_has(&p, f->title, "kernel walk");
	assert_has(&p, f->title, "is for the load at walk.cu:6");
	assert_has(&p, f->evidence, "\"file\":\"/home/ada/walk.cu\",\"line\":6");
	assert_has(&p, f->evidence, "\"name\":\"long_scoreboard\"");
	/* 800 of 1000 samples wait for it, exposed, in 20 ms. */
	assert_true(f->saving_ns > 10 * CASE_MS && f->saving_ns <= 16 * CASE_MS);
	plumb_profile_free(&p);
	assert_false(has("stalled", "stalls.share=34%", "stalls-")); /* 20 of 60 ms */
	assert_true(has("stalled", "stalls.share=33%", "stalls-"));
	assert_false(has("stalled", "stalls.samples=1001", "stalls-"));
	assert_true(has("stalled", "stalls.samples=1000", "stalls-"));
	assert_false(has("stalled", "stalls.waiting=83%", "stalls-")); /* 820 of 1000 */
	assert_true(has("stalled", "stalls.waiting=81.9%", "stalls-"));
	the_case.walk_waits = 199;
	the_case.walk_issues = 0;
	the_case.walk_other = 20 * 199; /* then another cause is the first one */
	assert_false(has("stalled", "stalls.cause=100%", "stalls-pointer"));
	the_case.walk_waits = 800;
	the_case.walk_other = 20;
	the_case.walk_code = false;
	analyzed("stalled", NULL, &p);
	f = find(&p, "stalls-reason-");
	assert_non_null(f);
	assert_int_equal(f->severity, PLUMB_NOTE);
	assert_int_equal(f->saving_ns, PLUMB_UNKNOWN);
	assert_has(&p, f->title, "long_scoreboard");
	assert_has(&p, f->advice, "machine code");
	plumb_profile_free(&p);
}

static void
test_traffic(void **state)
{
	(void)state;
	struct plumb_profile p;
	analyzed("traffic", NULL, &p);
	const struct plumb_finding *f = must_find(&p, "traffic-pointers-");

	assert_has(&p, f->title, "300,000 loads of 8 bytes by single lanes of GPU 0, GPU 1, GPU 2");
	assert_has(&p, f->title, "flag_ptrs (32 B, GPU 3, allocated at bfs.py:17), at bfs.cu:72");
	assert_has(&p, f->evidence, "\"saving_bytes\":2400000");
	assert_int_equal(f->severity, PLUMB_WARNING);
	assert_int_equal(f->saving_ns, PLUMB_UNKNOWN);
	f = must_find(&p, "traffic-sharing-");
	assert_has(&p, f->title, "100.0 % of the writes to counters");
	f = must_find(&p, "traffic-untouched-");
	assert_has(&p, f->evidence, "\"saving_bytes\":267386880");
	assert_int_equal(f->severity, PLUMB_NOTE);
	f = must_find(&p, "traffic-relay-");
	assert_has(&p, f->title, "GPU 1 passes on 10.0 MiB from GPU 0 to GPU 2");
	assert_in_range(f->saving_ns, 104850, 104860); /* 10 MiB at 100 GB/s */
	assert_null(find(&p, "traffic-pair-"));
	assert_null(find(&p, "traffic-halo-"));
	assert_null(find(&p, "traffic-thrash-"));
	plumb_profile_free(&p);
	assert_true(has("traffic", "traffic.accesses=300000", "traffic-pointers"));
	assert_false(has("traffic", "traffic.accesses=300001", "traffic-pointers"));
	assert_true(has("traffic", "traffic.small=32", "traffic-pointers"));
	assert_false(has("traffic", "traffic.small=31", "traffic-pointers"));
	the_case.pointer_lanes = 2;
	assert_true(has("traffic", NULL, "traffic-pointers"));
	assert_false(has("traffic", "traffic.lanes=1", "traffic-pointers"));
	assert_true(has("traffic", "traffic.accesses=16000", "traffic-sharing"));
	assert_false(has("traffic", "traffic.accesses=16001", "traffic-sharing"));
	the_case.counter_step = 128;
	assert_false(has("traffic", NULL, "traffic-sharing"));
	assert_true(has("traffic", "traffic.relayed=10485760", "traffic-relay"));
	assert_false(has("traffic", "traffic.relayed=10485761", "traffic-relay"));
	assert_true(has("traffic", "traffic.large=268435456", "traffic-untouched"));
	assert_false(has("traffic", "traffic.large=268435457", "traffic-untouched"));
	the_case.touched = 1 << 26;
	assert_false(has("traffic", NULL, "traffic-untouched"));
	assert_true(has("traffic", "traffic.touched=25%", "traffic-untouched"));
}

static void
test_outside_operators(void **state)
{
	struct plumb_profile p;
	const struct plumb_finding *f;

	(void)state;
	analyzed("outside", NULL, &p);
	f = must_find(&p, "outside-host");
	assert_has(&p, f->title,
	           "fetch (case.py:31) takes 30.0 % of the main thread's time, 300 ms, mostly in "
	           "request (");
	assert_has(&p, f->title, "operators run for 10.0 ms of it");
	assert_has(&p, f->evidence, "\"looks\":5");
	assert_int_equal(f->saving_ns, 290 * CASE_MS);
	assert_int_equal(f->severity, PLUMB_SERIOUS);
	assert_ptr_equal(f, p.findings); /* operators are notes */
	plumb_profile_free(&p);
	assert_true(has("outside", "outside.share=28.9%", "outside-host")); /* without operators */
	assert_false(has("outside", "outside.share=29.1%", "outside-host"));
	assert_true(has("outside", "outside.operators=4%", "outside-host"));
	assert_false(has("outside", "outside.operators=3%", "outside-host"));
	the_case.sleeps = NULL;
	analyzed("outside", NULL, &p);
	f = must_find(&p, "outside-host");
	assert_has(&p, f->title, "the main thread's time, 300 ms; operators run");
	plumb_profile_free(&p);
	the_case.elsewhere = 660 * CASE_MS; /* of 1320 ms */
	assert_true(has("outside", NULL, "outside"));
	the_case.elsewhere += 10;
	assert_false(has("outside", NULL, "outside"));
	the_case.elsewhere = 0;
	the_case.looks = 4;
	assert_false(has("outside", NULL, "outside"));
	the_case.looks = 5;
	the_case.asleep = 100 * CASE_MS;
	assert_false(has("outside", NULL, "outside"));
}

static void
test_waiting_host(void **state)
{
	struct plumb_profile p;
	const struct plumb_finding *f;

	(void)state;
	analyzed("copies", NULL, &p);
	f = must_find(&p, "latency-wait");
	assert_has(&p, f->title, "case.py:60 waits for the GPU 100 times, 30.0 ms in all");
	assert_int_equal(f->saving_ns, 30 * CASE_MS);
	plumb_profile_free(&p);
	assert_true(has("copies", "latency.share=15%", "latency-wait"));
	assert_false(has("copies", "latency.share=15.1%", "latency-wait"));
	the_case.busy = 190 * CASE_MS; /* waiting for a busy GPU is as it should be */
	assert_false(has("copies", NULL, "latency-wait"));
}

/* ---- what they have in common ---- */

static void
test_nothing_where_nothing_is(void **state)
{
	struct plumb_profile p;

	(void)state;
	analyzed("empty", NULL, &p);
	assert_int_equal(p.findings_count, 0);
	plumb_profile_free(&p);
	/* Without a GPU the operators' own time is what there is to say. */
	analyzed("cpu", NULL, &p);
	for (uint32_t i = 0; i < p.findings_count; i++) {
		assert_string_equal(plumb_text(&p, p.findings[i].rule), "hotspot");
		assert_int_equal(p.findings[i].severity, PLUMB_NOTE);
	}
	assert_non_null(find(&p, "hotspot-operator"));
	plumb_profile_free(&p);
	analyzed("deep", NULL, &p);
	plumb_profile_free(&p);
	analyzed("rude", NULL, &p);
	plumb_profile_free(&p);
}

/* Stored, read and made again; and with a file that lies elsewhere: the ids are the same. */
static void
test_ids_are_stable(void **state)
{
	static const char *const names[] = { "index",  "unet", "loss",    "loader", "outside",
		                             "copies", "gpu",  "stalled", "traffic" };
	char path[] = "/tmp/plumb-test-analyze-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
		struct plumb_profile first, again;
		struct plumb_error error = { 0 };

		reset(NULL);
		analyzed(names[n], NULL, &first);
		assert_int_equal(plumb_store_write(&first, path, NULL, NULL, &error), 0);
		assert_int_equal(plumb_store_read(&again, path, &error), 0);
		assert_int_equal(again.findings_count, first.findings_count);
		for (int pass = 0; pass < 2; pass++) {
			for (uint32_t i = 0; i < first.findings_count; i++) {
				const struct plumb_finding *a = &first.findings[i];
				const struct plumb_finding *b = &again.findings[i];

				assert_string_equal(plumb_text(&first, a->id),
				                    plumb_text(&again, b->id));
				assert_string_equal(plumb_text(&first, a->evidence),
				                    plumb_text(&again, b->evidence));
				assert_int_equal(a->context, b->context);
				for (uint32_t k = 0; k < i; k++)
					assert_string_not_equal(
						plumb_text(&first, a->id),
						plumb_text(&first, first.findings[k].id));
			}
			assert_int_equal(plumb_analyze(&again, NULL, &error), 0);
		}
		plumb_profile_free(&first);
		plumb_profile_free(&again);
	}
	remove(path);
	close(fd);
}

static void
test_other_findings_stay(void **state)
{
	struct plumb_finding_text other = { .id = "mine-1",
		                            .rule = "mine",
		                            .title = "bad \xff byte",
		                            .severity = 9,
		                            .context = 99999,
		                            .saving_ns = PLUMB_UNKNOWN,
		                            .confidence = 0.5 };
	struct plumb_error error;
	struct plumb_profile p;
	uint32_t before;

	(void)state;
	analyzed("index", NULL, &p);
	before = p.findings_count;
	assert_int_equal(plumb_findings_add(&p, &other, 1, &error), 0);
	assert_int_equal(plumb_analyze(&p, NULL, &error), 0);
	assert_int_equal(p.findings_count, before + 1);
	assert_int_equal(must_find(&p, "balance") - p.findings, 0); /* the one that saves most */
	assert_non_null(find(&p, "mine-1"));
	assert_string_equal(plumb_text(&p, find(&p, "mine-1")->title), "bad \xef\xbf\xbd byte");
	assert_int_equal(find(&p, "mine-1")->context, PLUMB_NONE);
	assert_int_equal(find(&p, "mine-1")->severity, PLUMB_NOTE);
	plumb_profile_free(&p);
}

static void
test_thresholds(void **state)
{
	static const char *const bad[] = { "nothing=1",
		                           "hotspot.share",
		                           "hotspot.share=",
		                           "hotspot.share=1ms",
		                           "hotspot.share=-1",
		                           "hotspot.share=nan",
		                           "hotspot.share=0x1p",
		                           "fusion.kernel_time=1e999",
		                           "fusion.kernel_time=5%" };
	struct plumb_thresholds *t;
	struct plumb_error error;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		error.code = 0;
		assert_null(plumb_thresholds_new(bad[i], &error));
		assert_int_equal(error.code, PLUMB_EUSAGE);
	}
	t = plumb_thresholds_new("hotspot.share=5%,fusion.kernel_time=2us,,"
	                         "hotspot.pageable_bytes=1M,balance.ratio=3x,",
	                         &error);
	assert_non_null(t);
	assert_true(plumb_thresholds_get(t, "hotspot.share") == 0.05);
	assert_true(plumb_thresholds_get(t, "fusion.kernel_time") == 2000);
	assert_true(plumb_thresholds_get(t, "hotspot.pageable_bytes") == 1048576);
	assert_true(plumb_thresholds_get(t, "balance.ratio") == 3);
	assert_true(plumb_thresholds_get(t, "fusion.kernels") == 100);
	plumb_thresholds_free(t);
}

/* Each allocation fails in turn: the caller learns of it and the profile keeps what it had. */
static void
test_no_memory(void **state)
{
	static const char *const names[] = { "index",  "unet",    "loss",    "loader", "outside",
		                             "copies", "windows", "stalled", "traffic" };
	/* Both loops of "windows" count, and both idle. */
	const struct plumb_analyze_options options = { .thresholds =
		                                               "loops.share=5%,latency.idle=10%" };

	(void)state;
	if (!FAILING_MALLOC)
		skip();
	for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
		struct plumb_profile p = { 0 };
		bool reached = true;

		reset(NULL);
		assert_true(sample_make(names[n], &p));
		if (p.windows_count)
			windows_add_use(&p);
		for (long i = 0; reached; i++) {
			int code;

			failing_malloc_at = i;
			code = plumb_analyze(&p, &options, NULL);
			reached = failing_malloc_stop();
			assert_true(reached ? code == PLUMB_ESYSTEM : code == 0);
			assert_true(!reached || p.findings_count == 0);
		}
		assert_true(p.findings_count > 0);
		plumb_profile_free(&p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_hot_kernels_operators_and_lines, reset),
		cmocka_unit_test_setup(test_layout_conversions, reset),
		cmocka_unit_test_setup(test_pageable_copies, reset),
		cmocka_unit_test_setup(test_copying_kernels, reset),
		cmocka_unit_test_setup(test_fusion, reset),
		cmocka_unit_test_setup(test_balance, reset),
		cmocka_unit_test_setup(test_workers, reset),
		cmocka_unit_test_setup(test_loading, reset),
		cmocka_unit_test_setup(test_busy_host, reset),
		cmocka_unit_test_setup(test_stalls, reset),
		cmocka_unit_test_setup(test_traffic, reset),
		cmocka_unit_test_setup(test_outside_operators, reset),
		cmocka_unit_test_setup(test_waiting_host, reset),
		cmocka_unit_test_setup(test_nothing_where_nothing_is, reset),
		cmocka_unit_test_setup(test_ids_are_stable, reset),
		cmocka_unit_test_setup(test_other_findings_stay, reset),
		cmocka_unit_test_setup(test_thresholds, reset),
		cmocka_unit_test_setup(test_contention, reset),
		cmocka_unit_test_setup(test_no_memory, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
