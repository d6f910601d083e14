/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the analysis of traffic: what its causes share. */
#ifndef PLUMB_ANALYZE_TRAFFIC_FINDINGS_H
#define PLUMB_ANALYZE_TRAFFIC_FINDINGS_H

#include "analyze/study.h"
#include "analyze/traffic/traffic.h"

struct plumb_traffic_finder {
	struct plumb_study *study;
	struct plumb_traffic traffic;
	unsigned char *pointers; /* by object: it is an array of pointers on the wrong device */
};

/* Each adds the findings of its causes. PLUMB_ESYSTEM: no memory. */
int plumb_traffic_find_pointers(struct plumb_traffic_finder *f);
int plumb_traffic_find_unexpected(struct plumb_traffic_finder *f);
int plumb_traffic_find_relays(struct plumb_traffic_finder *f);
int plumb_traffic_find_halos(struct plumb_traffic_finder *f);
int plumb_traffic_find_filled(struct plumb_traffic_finder *f);
int plumb_traffic_find_untouched(struct plumb_traffic_finder *f);
int plumb_traffic_find_sharing(struct plumb_traffic_finder *f);
int plumb_traffic_find_thrash(struct plumb_traffic_finder *f);

/* ---- what they share ---- */

/* So many objects are looked at, those with most traffic first: some causes compare each with the
 * others. */
#define PLUMB_TRAFFIC_OBJECTS_MOST 2048

/* So many uses of each, likewise. */
#define PLUMB_TRAFFIC_USES_MOST 512
static inline uint32_t
plumb_traffic_uses(const struct plumb_traffic_object *object)
{
	return object->uses.count < PLUMB_TRAFFIC_USES_MOST ? object->uses.count
	                                                    : PLUMB_TRAFFIC_USES_MOST;
}

uint32_t plumb_traffic_looked_at(const struct plumb_traffic_finder *f);
/* Was OTHER allocated at the same place as OBJECT (of the list), and is it of the same kind? */
bool plumb_traffic_is_alike(const struct plumb_traffic_finder *f, uint32_t object, uint32_t other);
/* Begins a draft about OBJECT (an id). Its key has no numbers of this run. */
void plumb_traffic_begin(const struct plumb_traffic_finder *f, struct plumb_draft *draft,
                         const char *cause, uint32_t object);
/* Writes the object: object, owner, allocated_at, allocated_bytes. */
void plumb_traffic_object_json(const struct plumb_traffic_finder *f, struct plumb_json *json,
                               uint32_t object);
/* Writes the lines that reach OBJECT, the most bytes first: reached_at[] {line, bytes, accesses}.
 * Returns the first one, or NULL. */
const struct plumb_traffic_place *
plumb_traffic_lines_json(const struct plumb_traffic_finder *f, struct plumb_json *json,
                         uint32_t object);
/* The time that BYTES take from one device to another as this profile measured; PLUMB_UNKNOWN. */
int64_t
plumb_traffic_time(const struct plumb_traffic_finder *f, uint32_t from, uint32_t to, int64_t bytes);
/* "name (2.00 MiB, GPU 3, allocated at bfs.cu:17)". Returns TEXT. */
#define PLUMB_TRAFFIC_WORDS 420
char *plumb_traffic_object_words(const struct plumb_traffic_finder *f, uint32_t object,
                                 char text[PLUMB_TRAFFIC_WORDS]);
/* Were accesses of a device to its own memory looked at, too? Without them, what nobody touched is
 * not known. */
bool plumb_traffic_sees_local(const struct plumb_traffic_finder *f);
/* How far a finding can be trusted that needs all reads of an object: CONFIDENCE, or less if the
 * program has copies by tensor maps, which nobody sees. */
double plumb_traffic_trust(const struct plumb_traffic_finder *f, double confidence);
/* Was only a part of the launches looked at? */
bool plumb_traffic_is_sampled(const struct plumb_traffic_finder *f);

#endif
