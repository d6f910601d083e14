/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The annotation "plumb" of each slice: what an import needs beside the name and the times
 * (base/facts.h). Frames, contexts and tracks are described where they are first used. Private to
 * export/.
 */
#ifndef PLUMB_EXPORT_PERFETTO_FACTS_H
#define PLUMB_EXPORT_PERFETTO_FACTS_H

#include "base/facts.h"
#include "base/protobuf.h"
#include "model/profile.h"

struct plumb_perfetto_facts {
	const struct plumb_profile *profile;
	uint64_t names;               /* the number of the interned name of fact 0 */
	bool *started;                /* by context: a range that others may cross */
	uint32_t *launches;           /* by context */
	uint32_t *drawn;              /* by context: spans on this track */
	unsigned char *frames, *made; /* bits, by frame and by context: described */
	uint32_t *path;               /* room for the deepest */
};

/* False: no memory. plumb_perfetto_facts_free is due either way. */
bool plumb_perfetto_facts_init(struct plumb_perfetto_facts *facts,
                               const struct plumb_profile *profile, uint64_t names);
void plumb_perfetto_facts_free(struct plumb_perfetto_facts *facts);

/* The next ones are the spans of a track, which begin at SPANS; COUNT may reach beyond. */
void plumb_perfetto_facts_track(struct plumb_perfetto_facts *facts, const struct plumb_span *spans,
                                uint32_t count);
/* Call this within an event. FIRST: the event is the first of its track in the file. One track of
 * the profile may be several tracks of the file. */
void plumb_perfetto_facts_put(struct plumb_perfetto_facts *facts, struct plumb_protobuf *message,
                              const struct plumb_span *span, bool first);

#endif
