/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread fills blocks, the caller empties them, in turn. All three formats may be several streams
 * behind one another, as `cat a.gz b.gz` makes them. A file that is not packed needs no thread,
 * because the system reads it ahead itself. Most of it goes straight to where the caller wants it.
 */
#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/vec.h"

#define BLOCKS 4
#define BLOCK_BYTES ((size_t)512 << 10)
#define PACKED_BYTES ((size_t)256 << 10)
#define WRITER_MS 300
#define XZ_MEMORY ((uint64_t)1 << 30) /* an xz stream may ask for so much */

enum packing { PLAIN, GZIP, ZSTD, XZ };

struct block {
	char *data; /* BLOCK_BYTES */
	size_t bytes;
};

struct plumb_input {
	char *path, *temporary;
	int fd;
	enum packing packing;
	bool straight; /* no thread */
	/* The reader's. */
	unsigned char lead[8]; /* of a pipe: what was read to tell its packing */
	size_t lead_at, lead_bytes;
	unsigned char *packed;
	size_t packed_at, packed_bytes;
	uint64_t packed_offset; /* of packed[0] in the file */
	bool file_ended, within;
	z_stream gzip;
	ZSTD_DStream *zstd;
	lzma_stream xz;
	/* Both sides'. */
	pthread_mutex_t lock;
	pthread_cond_t filled, emptied;
	struct block blocks[BLOCKS];
	unsigned written, taken; /* blocks so far */
	bool ended, stop, started;
	struct plumb_error error; /* code 0: none */
	/* The caller's. */
	pthread_t thread;
	size_t at; /* in the block that is being emptied */
	bool remember;
	struct kept {
		char *items;
		uint32_t count, capacity;
	} kept; /* what was read while that was asked for */
	size_t kept_at;
};

static int
fail_damaged(struct plumb_input *input, const char *what)
{
	return plumb_fail(&input->error, PLUMB_EINPUT,
	                  "%s: %s at byte %llu of the packed file; the file is not complete: copy "
	                  "it again",
	                  input->path, what,
	                  (unsigned long long)(input->packed_offset + input->packed_at));
}

/* ---- the reader ---- */

/* As read(2), until there is something. */
static ssize_t
read_some(struct plumb_input *input, void *to, size_t room)
{
	size_t lead = input->lead_bytes - input->lead_at;
	ssize_t got;
	if (lead) {
		lead = lead < room ? lead : room;
		memcpy(to, input->lead + input->lead_at, lead);
		input->lead_at += lead;
		return (ssize_t)lead;
	}
	do
		got = read(input->fd, to, room);
	while (got < 0 && errno == EINTR);
	return got;
}

/* Reads more packed bytes after those that are left. Negative: an error. */
static int
read_packed(struct plumb_input *input)
{
	if (input->packed_at < input->packed_bytes || input->file_ended)
		return 0;
	ssize_t got = read_some(input, input->packed, PACKED_BYTES);
	if (got < 0)
		return plumb_fail_errno(&input->error, "%s: cannot be read", input->path);
	input->packed_offset += input->packed_bytes;
	input->packed_at = 0;
	input->packed_bytes = (size_t)got;
	input->file_ended = !got;
	return 0;
}

/* Adds to *BYTES at TO until there are ROOM, or the file has ended. */
static int
fill_plain(struct plumb_input *input, char *to, size_t room, size_t *bytes)
{
	while (*bytes < room) {
		ssize_t got = read_some(input, to + *bytes, room - *bytes);
		if (got < 0)
			return plumb_fail_errno(&input->error, "%s: cannot be read", input->path);
		if (!got)
			return 0;
		*bytes += (size_t)got;
	}
	return 0;
}

/* Each of these unpacks some bytes: to block->bytes, from packed_at, and sets `within` while in a
 * stream. */

static int
unpack_gzip(struct plumb_input *input, struct block *block)
{
	z_stream *gzip = &input->gzip;
	if (!input->within && inflateReset(gzip) != Z_OK)
		return fail_damaged(input, "zlib cannot begin");
	gzip->next_in = input->packed + input->packed_at;
	gzip->avail_in = (unsigned)(input->packed_bytes - input->packed_at);
	gzip->next_out = (unsigned char *)block->data + block->bytes;
	gzip->avail_out = (unsigned)(BLOCK_BYTES - block->bytes);
	int result = inflate(gzip, Z_NO_FLUSH);
	input->packed_at = input->packed_bytes - gzip->avail_in;
	block->bytes = BLOCK_BYTES - gzip->avail_out;
	input->within = result != Z_STREAM_END;
	if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
		return fail_damaged(input, gzip->msg ? gzip->msg : "damaged gzip data");
	return 0;
}

static int
unpack_zstd(struct plumb_input *input, struct block *block)
{
	ZSTD_inBuffer from = { input->packed, input->packed_bytes, input->packed_at };
	ZSTD_outBuffer to = { block->data, BLOCK_BYTES, block->bytes };
	size_t result = ZSTD_decompressStream(input->zstd, &to, &from);
	input->packed_at = from.pos;
	block->bytes = to.pos;
	if (ZSTD_isError(result))
		return fail_damaged(input, ZSTD_getErrorName(result));
	input->within = result != 0;
	return 0;
}

static int
unpack_xz(struct plumb_input *input, struct block *block)
{
	lzma_stream *xz = &input->xz;
	xz->next_in = input->packed + input->packed_at;
	xz->avail_in = input->packed_bytes - input->packed_at;
	xz->next_out = (uint8_t *)block->data + block->bytes;
	xz->avail_out = BLOCK_BYTES - block->bytes;
	lzma_ret result = lzma_code(xz, input->file_ended ? LZMA_FINISH : LZMA_RUN);
	input->packed_at = input->packed_bytes - xz->avail_in;
	block->bytes = BLOCK_BYTES - xz->avail_out;
	input->within = result != LZMA_STREAM_END; /* true until the whole file has ended */
	if (result == LZMA_MEMLIMIT_ERROR)
		return plumb_fail(
			&input->error, PLUMB_EINPUT,
			"%s: this xz file needs more than 1 GiB of memory: unpack it first",
			input->path);
	if (result == LZMA_BUF_ERROR && input->file_ended)
		return 0; /* `within` says it */
	if (result != LZMA_OK && result != LZMA_STREAM_END)
		return fail_damaged(input, "damaged xz data");
	return 0;
}

static int
fill_packed(struct plumb_input *input, struct block *block)
{
	static int (*const unpack[])(struct plumb_input *, struct block *) = {
		[GZIP] = unpack_gzip, [ZSTD] = unpack_zstd, [XZ] = unpack_xz
	};
	while (block->bytes < BLOCK_BYTES) {
		size_t before = block->bytes, at = input->packed_at;
		if (read_packed(input) < 0)
			return -1;
		bool none = input->packed_at == input->packed_bytes && input->file_ended;
		if (none && !input->within)
			return 0;
		if (unpack[input->packing](input, block) < 0)
			return -1;
		if (none && block->bytes == before && input->packed_at == at && input->within)
			return fail_damaged(input, "the packed data ends too early");
	}
	return 0;
}

/* False: it is the last one. */
static bool
fill_block(struct plumb_input *input, struct block *block)
{
	block->bytes = 0;
	int code = input->packing == PLAIN
	                   ? fill_plain(input, block->data, BLOCK_BYTES, &block->bytes)
	                   : fill_packed(input, block);
	return !code && block->bytes == BLOCK_BYTES;
}

static void *
read_ahead(void *data)
{
	struct plumb_input *input = data;
	pthread_mutex_lock(&input->lock);
	while (!input->stop && !input->ended) {
		if (input->written - input->taken == BLOCKS) {
			pthread_cond_wait(&input->emptied, &input->lock);
			continue;
		}
		struct block *block = &input->blocks[input->written % BLOCKS];
		pthread_mutex_unlock(&input->lock);
		bool more = fill_block(input, block);
		pthread_mutex_lock(&input->lock);
		input->ended = !more;
		input->written += block->bytes > 0;
		pthread_cond_signal(&input->filled);
	}
	pthread_mutex_unlock(&input->lock);
	return NULL;
}

/* ---- the caller ---- */

/* Looks at the first bytes, which are still to be read. From a pipe they are taken and kept. */
static ssize_t
peek_start(struct plumb_input *input, unsigned char *to, size_t room)
{
	ssize_t got = pread(input->fd, to, room, 0);
	if (got >= 0 || errno != ESPIPE)
		return got;
	/* Who writes to a named pipe may be about to open it; without a writer it is empty. */
	poll(&(struct pollfd){ .fd = input->fd, .events = POLLIN }, 1, WRITER_MS);
	while (input->lead_bytes < room && (got = read(input->fd, input->lead + input->lead_bytes,
	                                               room - input->lead_bytes)) != 0) {
		if (got < 0 && errno != EINTR)
			break; /* the next read says why */
		input->lead_bytes += got > 0 ? (size_t)got : 0;
	}
	memcpy(to, input->lead, input->lead_bytes);
	return (ssize_t)input->lead_bytes;
}

static enum packing
packing_of(struct plumb_input *input)
{
	unsigned char magic[6];
	ssize_t got = peek_start(input, magic, sizeof magic);
	_Static_assert(sizeof magic <= sizeof input->lead, "there is room for a pipe's");
	if (got >= 2 && magic[0] == 0x1f && magic[1] == 0x8b)
		return GZIP;
	if (got >= 4 && !memcmp(magic, "\x28\xb5\x2f\xfd", 4))
		return ZSTD;
	if (got == 6 && !memcmp(magic,
	                        "\xfd"
	                        "7zXZ",
	                        6))
		return XZ;
	return PLAIN;
}

static int
prepare_decoder(struct plumb_input *input)
{
	for (int i = 0; i < BLOCKS; i++)
		if (!(input->blocks[i].data = malloc(BLOCK_BYTES)))
			return -1;
	if (input->packing != PLAIN && !(input->packed = malloc(PACKED_BYTES)))
		return -1;
	if (input->packing == GZIP && inflateInit2(&input->gzip, 15 + 16) != Z_OK)
		return -1;
	if (input->packing == ZSTD && !(input->zstd = ZSTD_createDStream()))
		return -1;
	if (input->packing == XZ &&
	    lzma_stream_decoder(&input->xz, XZ_MEMORY, LZMA_CONCATENATED) != LZMA_OK)
		return -1;
	return 0;
}

int
plumb_input_open(struct plumb_input **result, const char *path, struct plumb_error *error)
{
	struct stat status;
	struct plumb_input *input = calloc(1, sizeof *input);
	*result = NULL;
	if (!input || !(input->path = strdup(path))) {
		free(input);
		return plumb_fail_memory(error, "to read %s", path);
	}
	pthread_mutex_init(&input->lock, NULL);
	pthread_cond_init(&input->filled, NULL);
	pthread_cond_init(&input->emptied, NULL);
	/* A pipe that nobody writes to must not make us wait. */
	input->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (input->fd >= 0)
		fcntl(input->fd, F_SETFL, fcntl(input->fd, F_GETFL) & ~O_NONBLOCK);
	int code = 0;
	if (input->fd < 0 || fstat(input->fd, &status) < 0)
		code = plumb_fail_errno(error, "%s: cannot be read", path);
	else if (S_ISDIR(status.st_mode))
		code = plumb_fail(error, PLUMB_EINPUT, "%s: is a folder; name a file", path);
	if (!code) {
		input->packing = packing_of(input);
		input->straight = input->packing == PLAIN && S_ISREG(status.st_mode);
		if (input->straight)
			posix_fadvise(input->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
		if (prepare_decoder(input) < 0)
			code = plumb_fail_memory(error, "to read %s", path);
	}
	if (code) {
		plumb_input_close(input);
		return code;
	}
	*result = input;
	return 0;
}

static void
stop_thread(struct plumb_input *input)
{
	if (!input->started)
		return;
	pthread_mutex_lock(&input->lock);
	input->stop = true;
	pthread_cond_signal(&input->emptied);
	pthread_mutex_unlock(&input->lock);
	pthread_join(input->thread, NULL);
	input->started = false;
}

void
plumb_input_close(struct plumb_input *input)
{
	if (!input)
		return;
	stop_thread(input);
	if (input->fd >= 0)
		close(input->fd);
	if (input->temporary)
		unlink(input->temporary);
	for (int i = 0; i < BLOCKS; i++)
		free(input->blocks[i].data);
	if (input->packing == GZIP)
		inflateEnd(&input->gzip);
	ZSTD_freeDStream(input->zstd);
	lzma_end(&input->xz);
	pthread_mutex_destroy(&input->lock);
	pthread_cond_destroy(&input->filled);
	pthread_cond_destroy(&input->emptied);
	free(input->packed);
	plumb_vec_free(&input->kept);
	free(input->temporary);
	free(input->path);
	free(input);
}

static int
start_thread(struct plumb_input *input, struct plumb_error *error)
{
	if (input->started || input->straight)
		return 0;
	int failed = pthread_create(&input->thread, NULL, read_ahead, input);
	if (failed) {
		errno = failed;
		return plumb_fail_errno(error, "%s: no thread to read it with", input->path);
	}
	input->started = true;
	return 0;
}

/* The block to be emptied; NULL at the end or after an error. */
static struct block *
next_block(struct plumb_input *input, struct plumb_error *error, int *code)
{
	*code = start_thread(input, error);
	if (*code < 0)
		return NULL;
	struct block *block = &input->blocks[input->taken % BLOCKS];
	pthread_mutex_lock(&input->lock);
	if (input->straight && input->written == input->taken && !input->ended) {
		input->ended = !fill_block(input, block);
		input->written += block->bytes > 0;
	}
	while (input->written == input->taken && !input->ended)
		pthread_cond_wait(&input->filled, &input->lock);
	if (input->written == input->taken) {
		block = NULL;
		if (input->error.code)
			*code = plumb_fail(error, input->error.code, "%s", input->error.message);
	}
	pthread_mutex_unlock(&input->lock);
	return block;
}

/* Reads into TO itself, if no block has anything and TO is no smaller than one. Returns the bytes;
 * after an error next_block says so. */
static size_t
read_straight(struct plumb_input *input, char *to, size_t room)
{
	size_t bytes = 0;
	if (!input->straight || input->remember || input->ended || input->written != input->taken ||
	    room < BLOCK_BYTES)
		return 0;
	input->ended = fill_plain(input, to, room, &bytes) < 0 || bytes < room;
	return bytes;
}

void
plumb_input_remember(struct plumb_input *input)
{
	input->remember = true;
}

void
plumb_input_rewind(struct plumb_input *input)
{
	input->remember = false;
	input->kept_at = 0;
}

/* What was kept comes first. */
static size_t
read_kept(struct plumb_input *input, char *to, size_t room)
{
	size_t part = input->kept.count - input->kept_at;
	if (input->remember || !input->kept.count)
		return 0;
	part = part < room ? part : room;
	memcpy(to, input->kept.items + input->kept_at, part);
	input->kept_at += part;
	if (input->kept_at == input->kept.count)
		plumb_vec_free(&input->kept);
	return part;
}

/* False: no more can be kept. */
static bool
keep_bytes(struct plumb_input *input, const char *data, size_t bytes)
{
	struct kept *kept = &input->kept;
	uint64_t wanted = (uint64_t)kept->count + bytes;
	if (wanted > kept->capacity) {
		char *more = plumb_vec_grow(kept->items, &kept->capacity, wanted, 1);
		if (!more)
			return false;
		kept->items = more;
	}
	memcpy(kept->items + kept->count, data, bytes);
	kept->count += (uint32_t)bytes;
	return true;
}

ssize_t
plumb_input_read(struct plumb_input *input, void *to, size_t room, struct plumb_error *error)
{
	size_t done = read_kept(input, to, room);
	while (done < room) {
		int code;
		done += read_straight(input, (char *)to + done, room - done);
		if (done == room)
			break;
		struct block *block = next_block(input, error, &code);
		if (!block)
			return code < 0 ? code : (ssize_t)done;
		size_t part = block->bytes - input->at;
		if (part > room - done)
			part = room - done;
		if (input->remember && (input->kept.count + part > PLUMB_INPUT_REMEMBERED ||
		                        !keep_bytes(input, block->data + input->at, part)))
			return (ssize_t)done;
		memcpy((char *)to + done, block->data + input->at, part);
		done += part;
		input->at += part;
		if (input->at == block->bytes) {
			input->at = 0;
			pthread_mutex_lock(&input->lock);
			input->taken++;
			pthread_cond_signal(&input->emptied);
			pthread_mutex_unlock(&input->lock);
		}
	}
	return (ssize_t)done;
}

int
plumb_input_head(struct plumb_input *input, const char **head, size_t *bytes,
                 struct plumb_error *error)
{
	int code;
	struct block *block = next_block(input, error, &code);
	*head = block ? block->data : "";
	*bytes = block ? block->bytes : 0;
	if (*bytes > PLUMB_INPUT_HEAD)
		*bytes = PLUMB_INPUT_HEAD;
	return code;
}

const char *
plumb_input_packing(const struct plumb_input *input)
{
	static const char *const names[] = { [GZIP] = "gzip", [ZSTD] = "zstd", [XZ] = "xz" };
	return names[input->packing];
}

const char *
plumb_input_path(const struct plumb_input *input)
{
	return input->path;
}

static int
write_all(int fd, const char *data, size_t bytes)
{
	while (bytes) {
		ssize_t done = write(fd, data, bytes);
		if (done < 0 && errno != EINTR)
			return -1;
		if (done > 0) {
			data += done;
			bytes -= (size_t)done;
		}
	}
	return 0;
}

const char *
plumb_input_file(struct plumb_input *input, struct plumb_error *error)
{
	if (input->packing == PLAIN)
		return input->path;
	if (input->temporary)
		return input->temporary;
	const char *folder = getenv("TMPDIR");
	char *buffer = malloc(BLOCK_BYTES);
	ssize_t got = -1;
	int fd = -1;
	if (asprintf(&input->temporary, "%s/plumb-XXXXXX", folder && *folder ? folder : "/tmp") < 0)
		input->temporary = NULL;
	if (!buffer || !input->temporary) {
		plumb_fail_memory(error, "to read %s", input->path);
	} else if ((fd = mkstemp(input->temporary)) < 0) {
		plumb_fail_errno(error,
		                 "%s: cannot be unpacked to %s; set TMPDIR to another folder",
		                 input->path, input->temporary);
		free(input->temporary);
		input->temporary = NULL;
	} else {
		while ((got = plumb_input_read(input, buffer, BLOCK_BYTES, error)) > 0)
			if (write_all(fd, buffer, (size_t)got) < 0) {
				plumb_fail_errno(error,
				                 "%s: cannot be unpacked to %s; set TMPDIR to "
				                 "another folder",
				                 input->path, input->temporary);
				got = -1;
				break;
			}
		close(fd);
	}
	free(buffer);
	return got < 0 ? NULL : input->temporary;
}
