/* SPDX-License-Identifier: Apache-2.0 */
/* What a communication library told → collectives and transfers: groups, ranks, devices, damage. */
#include "settle_regions.h"

static plumb_id
stream_of(uint32_t ordinal)
{
	struct plumb_record_device *device = RECORD(DEVICE, device);
	device->ordinal = ordinal;
	device->uuid[0] = (uint8_t)(1 + ordinal);
	plumb_id id = plumb_region_id(&region, device);
	struct plumb_record_stream *stream = RECORD(STREAM, stream);
	stream->device = id;
	stream->stream = 7;
	return plumb_region_id(&region, stream);
}

static plumb_id
communicator(uint64_t id, int64_t size, int64_t rank, plumb_id stream)
{
	plumb_id name = text("pg");
	struct plumb_record_communicator *c = RECORD(COMMUNICATOR, communicator);
	c->id = id;
	c->name = name;
	c->size = size;
	c->rank = rank;
	c->nodes = 1;
	c->stream = stream;
	return plumb_region_id(&region, c);
}

static struct plumb_record_collective *
collective(plumb_id of, const char *operation, int64_t sequence, int64_t bytes)
{
	plumb_id name = text(operation);
	struct plumb_record_collective *c = RECORD(COLLECTIVE, collective);
	c->communicator = of;
	c->operation = name;
	c->called = 101 * SECOND;
	c->bytes = bytes;
	c->sequence = sequence;
	c->peer = c->root = c->channels = INT64_MIN;
	return c;
}

static struct plumb_record_communication *
told(plumb_id of, enum plumb_access_kind kind, int64_t peer, uint64_t calls, uint64_t bytes)
{
	plumb_id name = text("AllReduce");
	struct plumb_record_communication *t = RECORD(COMMUNICATION, communication);
	t->communicator = of;
	t->operation = name;
	t->kind = kind;
	t->peer = peer;
	t->calls = calls;
	t->bytes = bytes;
	return t;
}

/* Two ranks of one job: RANK of it is MEMBER of the group. */
static void
write_rank(const char *name, int rank, int64_t member)
{
	begin(0, name);
	process((uint32_t)(10 + rank), rank);
	plumb_id of = communicator(0xabc, 2, member, stream_of((uint32_t)rank));
	collective(of, "AllReduce", 4, 1000);
	told(of, PLUMB_ACCESS_SEND, 1 - member, 3, 300);
	told(of, PLUMB_ACCESS_SEND, 1 - member, 1, 100); /* another record of the same */
	told(of, PLUMB_ACCESS_RECEIVE, 1 - member, 2, 200);
	end();
}

static void
groups(void **state)
{
	(void)state;
	write_rank("1", 5, 1);
	write_rank("2", 7, 0);
	settle(1);
	assert_int_equal(profile.collectives_count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct plumb_collective *c = &profile.collectives[i];
		assert_string_equal(plumb_text(&profile, c->group), "pg (0xabc)");
		assert_string_equal(plumb_text(&profile, c->ranks), "[7, 5]");
		assert_int_equal(c->size, 2);
		assert_int_equal(c->sequence, 4);
		assert_int_equal(c->bytes, 1000);
		assert_true(c->track == PLUMB_NONE && c->end_ns == PLUMB_UNKNOWN);
		assert_int_equal(c->start_ns, c->called_ns);
	}
	assert_int_equal(profile.transfers_count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		const struct plumb_transfer_row *t = &profile.transfers[i];
		bool sends = t->kind == PLUMB_ACCESS_SEND;
		uint32_t peer = 1 - t->initiator;
		assert_int_equal(t->accesses, sends ? 4 : 2);
		assert_int_equal(t->bytes, sends ? 400 : 200);
		assert_int_equal(t->ends.from, (sends ? t->initiator : peer) + 1);
		assert_int_equal(t->ends.to, (sends ? peer : t->initiator) + 1);
	}
	done();
}

/* Not all members are in the run: their ranks are not known, nor is the peer's device. */
static void
a_part_of_a_group(void **state)
{
	(void)state;
	write_rank("1", 0, 0);
	settle(1);
	assert_int_equal(profile.collectives_count, 1);
	assert_true(profile.collectives[0].ranks == PLUMB_NONE);
	assert_int_equal(profile.transfers_count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		bool sends = profile.transfers[i].kind == PLUMB_ACCESS_SEND;
		assert_int_equal(profile.transfers[i].initiator, 0);
		assert_int_equal(profile.transfers[i].ends.from, sends ? 1 : 0);
		assert_int_equal(profile.transfers[i].ends.to, sends ? 0 : 1);
	}
	done();
}

/* A communicator without kernels is on the device that its process has in other groups. */
static void
devices_of_other_groups(void **state)
{
	(void)state;
	begin(0, "1");
	process(10, 0);
	plumb_id stream = stream_of(3);
	communicator(1, 2, 0, stream);
	told(communicator(2, 2, 0, 0), PLUMB_ACCESS_COLLECTIVE, INT64_MIN, 1, 8);
	end();
	settle(1);
	assert_int_equal(profile.transfers_count, 1);
	assert_int_equal(profile.transfers[0].initiator, 0);
	assert_int_equal(profile.transfers[0].ends.from, 1);
	assert_int_equal(profile.transfers[0].ends.to, 0);
	done();
}

static void
damage(void **state)
{
	(void)state;
	begin(0, "1");
	process(10, 0);
	plumb_id of = communicator(9, -4, -9, 0x7fffffff);
	collective(of, "AllReduce", -8, -9);           /* numbers that cannot be */
	collective(0x7fffffff, "AllReduce", 1, 1);     /* no communicator */
	collective(of, "AllReduce", 1, 1)->writes = 3; /* being written */
	collective(of, "AllReduce", 1, 1)->called = 0;
	collective(of, "AllReduce", 2, 1)->stream = of; /* no stream */
	struct plumb_record_collective *c = collective(of, "AllReduce", 3, 1);
	c->operation = of; /* no string */
	c->node = of;      /* no node */
	c->end = UINT64_MAX;
	told(of, 99, 0, 1, 1);
	told(of, PLUMB_ACCESS_SEND, -5, 1, UINT64_MAX);
	told(0, PLUMB_ACCESS_SEND, 1, 1, 1);
	told(of, PLUMB_ACCESS_SEND, INT64_MAX, 1, 7);
	end();
	settle(1);
	assert_int_equal(profile.transfers_count, 1);
	assert_int_equal(profile.transfers[0].bytes, 7);
	uint32_t known = 0;
	for (uint32_t i = 0; i < profile.collectives_count; i++) {
		const struct plumb_collective *row = &profile.collectives[i];
		assert_true(row->size == PLUMB_UNKNOWN && row->rank == PLUMB_UNKNOWN);
		assert_true(row->track == PLUMB_NONE && row->ranks == PLUMB_NONE);
		known += row->bytes != PLUMB_UNKNOWN;
	}
	assert_true(known >= 2);
	done();
}

static struct plumb_record_device_link *
link_of(uint8_t one, uint8_t peer, enum plumb_link_kind kind)
{
	struct plumb_record_device_link *l = RECORD(DEVICE_LINK, device_link);
	l->uuid[0] = one;
	l->peer[0] = peer;
	l->kind = (uint16_t)kind;
	l->links = l->generation = l->peer_access = UINT32_MAX;
	l->bytes_per_second = UINT64_MAX;
	return l;
}

/* How GPUs are linked: of the devices of the run alone, each pair once; damaged records are
 * counted. */
static void
links(void **state)
{
	(void)state;
	begin(0, "1");
	process(10, 0);
	stream_of(0); /* its UUID begins with 1 */
	told(communicator(0xabc, 2, 0, 0), PLUMB_ACCESS_SEND, 1, 1, 5);
	end();
	begin(0, "run");
	link_of(1, 2, PLUMB_LINK_NVSWITCH)->links = 18;
	link_of(1, 2, PLUMB_LINK_NVSWITCH)->links = 18; /* another rank's launcher */
	link_of(1, 0, PLUMB_LINK_PCIE)->path = PLUMB_LINK_PATH_SYSTEM;
	link_of(0, 1, PLUMB_LINK_PCIE);                               /* without a GPU */
	link_of(2, 3, PLUMB_LINK_PCIE);                               /* none of the run's */
	link_of(1, 4, 0);                                             /* of no kind */
	link_of(1, 5, PLUMB_LINK_PCIE)->path = PLUMB_LINK_PATH_COUNT; /* damaged */
	link_of(1, 6, PLUMB_LINK_PCIE)->peer_access = 7;              /* damaged */
	end();
	settle(1);
	assert_int_equal(profile.device_links_count, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct plumb_device_link *l = &profile.device_links[i];
		bool host = l->peer == PLUMB_NONE;
		assert_int_equal(l->uuid, profile.devices[0].uuid);
		assert_int_equal(l->kind, host ? PLUMB_LINK_PCIE : PLUMB_LINK_NVSWITCH);
		assert_true(l->links == (host ? PLUMB_UNKNOWN : 18));
		assert_true(host == (l->path != PLUMB_NONE));
		assert_true(l->generation == PLUMB_UNKNOWN && l->peer_access == PLUMB_UNKNOWN &&
		            l->bytes_per_second == PLUMB_UNKNOWN);
	}
	int64_t damaged = 0;
	for (uint32_t i = 0; i < profile.ledger_count; i++)
		if (profile.ledger[i].source == PLUMB_SOURCE_REGION &&
		    profile.ledger[i].fate == PLUMB_FATE_DAMAGED)
			damaged += profile.ledger[i].count;
	assert_int_equal(damaged, 4);
	done();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(groups, setup, teardown),
		cmocka_unit_test_setup_teardown(a_part_of_a_group, setup, teardown),
		cmocka_unit_test_setup_teardown(devices_of_other_groups, setup, teardown),
		cmocka_unit_test_setup_teardown(damage, setup, teardown),
		cmocka_unit_test_setup_teardown(links, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
