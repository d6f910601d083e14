/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of an XPlane file has to be known before its events: names of planes, lines, events and
 * statistics, and what planes say about devices. In files as they are written, names come after the
 * events that need them. Private to import/.
 */
#ifndef PLUMB_IMPORT_XLA_XPLANE_H
#define PLUMB_IMPORT_XLA_XPLANE_H

#include "base/map.h"
#include "base/protobuf_read.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "import/import.h"

/* Fields by their numbers (xplane.proto). */
enum { SPACE_PLANE = 1, SPACE_HOST = 4 };
enum {
	PLANE_NAME = 2,
	PLANE_LINE,
	PLANE_EVENT_NAMES,
	PLANE_STAT_NAMES,
	PLANE_STAT,
};
enum {
	LINE_ID = 1,
	LINE_NAME = 2,
	LINE_TIMESTAMP = 3,
	LINE_EVENT = 4,
	LINE_DISPLAY_NAME = 11,
};
enum { EVENT_METADATA = 1, EVENT_OFFSET, EVENT_DURATION, EVENT_STAT, EVENT_OCCURRENCES };
enum {
	STAT_METADATA = 1,
	STAT_DOUBLE,
	STAT_UNSIGNED,
	STAT_SIGNED,
	STAT_TEXT,
	STAT_BYTES,
	STAT_REFERENCE,
};
enum { METADATA_ID = 1, METADATA_NAME = 2, METADATA_DISPLAY_NAME = 4, METADATA_STAT = 5 };

/* Statistics that are looked at; the names of the rest are not kept apart. */
enum xplane_stat {
	XPLANE_CORRELATION,
	XPLANE_KERNEL_DETAILS,
	XPLANE_COPY_DETAILS,
	XPLANE_SET_DETAILS,
	XPLANE_HLO_OP,
	XPLANE_HLO_MODULE,
	XPLANE_TF_OP,
	XPLANE_NAME,
	XPLANE_CLOCK,
	XPLANE_CORES,
	XPLANE_MEMORY,
	XPLANE_CAPABILITY_MAJOR,
	XPLANE_CAPABILITY_MINOR,
	XPLANE_DEVICE_TYPE,
	XPLANE_START,
	XPLANE_STATS
};

struct xplane_value {
	enum xplane_stat stat;
	bool known;              /* it is one of them, and has a value */
	int64_t number;          /* PLUMB_UNKNOWN */
	struct plumb_slice text; /* at NULL: none */
};

enum xplane_kind { XPLANE_OTHER, XPLANE_DEVICE, XPLANE_HOST, XPLANE_TASK };
enum xplane_line_kind { XPLANE_LINE_EVENTS, XPLANE_LINE_NESTED, XPLANE_LINE_REPEATED };

struct xplane_plane {
	enum xplane_kind kind;
	uint32_t name; /* in the table; PLUMB_NONE */
	int64_t ordinal;
	bool gpu;            /* a device with streams; else one whose lines are all XLA's */
	bool events, nested; /* it has a line of the kind */
	uint32_t line;       /* the first of its lines */
	uint32_t lines;
};

struct xplane_line {
	int64_t id, timestamp_ns;
	uint32_t name;
	enum xplane_line_kind kind;
};

struct xplane_name {
	uint32_t plane;
	bool event;
	int64_t id;
	uint32_t name, display;     /* in the table; PLUMB_NONE */
	uint32_t stats, stat_bytes; /* of an event: in `kept` */
};

struct xplane_kept { /* a plane's statistic, in `kept` */
	uint32_t plane, at, bytes;
};

struct xplane_names {
	struct plumb_strtab *texts; /* the first ones: by enum xplane_stat */
	PLUMB_VEC(struct xplane_plane) planes;
	PLUMB_VEC(struct xplane_line) lines;
	PLUMB_VEC(struct xplane_name) names;
	struct plumb_map map;
	PLUMB_VEC(char) kept;
	PLUMB_VEC(struct xplane_kept) plane_stats;
	uint32_t host; /* PLUMB_NONE */
	bool no_memory;
};

/* Reads all of INPUT but its events. */
int plumb_xplane_names(struct xplane_names *names, const char *path, struct plumb_input *input,
                       struct plumb_error *error);
void plumb_xplane_names_free(struct xplane_names *names);

const struct xplane_name *
plumb_xplane_name(const struct xplane_names *names, uint32_t plane, bool event, int64_t id);
/* What the statistic in BYTES says. False: it is damaged. */
bool plumb_xplane_stat(const struct xplane_names *names, uint32_t plane, struct plumb_slice bytes,
                       struct xplane_value *value);
struct plumb_slice plumb_xplane_text(const struct xplane_names *names, uint32_t text);

#endif
