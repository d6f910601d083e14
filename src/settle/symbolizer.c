/* SPDX-License-Identifier: Apache-2.0 */
#include "settle/symbolizer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"

#define SECONDS 90 /* for one answer: debuginfod may take 60 of them */
#define LIVES 4    /* so many children may be lost; after that nothing is asked any more */
#define MEMORY ((rlim_t)8 << 30)        /* of the child, without the files that it maps */
#define PAYLOAD_MAX ((uint32_t)4 << 20) /* bytes of an answer's texts */

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED __has_feature(address_sanitizer)
#else
#define SANITIZED 0
#endif

struct object {
	struct plumb_code_wanted wanted; /* its path is owned */
	enum plumb_code_state state;
	bool told; /* the child knows it */
	bool fetched;
	uint64_t bytes;
};

struct plumb_symbolizer {
	PLUMB_VEC(struct object) objects;
	pid_t child; /* 0: none */
	int socket;
	unsigned lost;
	char *payload;
	uint32_t room;
};

/* One question and its answer, each followed by so many bytes of texts. */
struct question {
	uint32_t object;
	uint32_t path_bytes; /* 0: the child knows the object */
	uint32_t operators;  /* not 0: an operator is asked for */
	uint64_t address;
	struct plumb_code_wanted wanted; /* without its path */
};
struct answer {
	uint32_t state;
	uint32_t bytes;
	uint32_t frames;
	uint8_t named, bounded, shared_name, fetched, redispatch;
	uint64_t start;
	uint64_t size;
};

/* ---- reading and writing ---- */

static bool
send_all(int fd, const void *data, size_t bytes)
{
	const char *at = data;

	while (bytes) {
		ssize_t done = send(fd, at, bytes, MSG_NOSIGNAL);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		at += done;
		bytes -= (size_t)done;
	}
	return true;
}

/* END: the time in ms until which it may take; 0 for ever. */
static bool
receive_all(int fd, void *data, size_t bytes, int64_t end)
{
	char *at = data;

	while (bytes) {
		struct pollfd one = { .fd = fd, .events = POLLIN };
		int64_t left = end ? end - plumb_clock_ms() : -1;
		if (end && left <= 0)
			return false;
		int ready = poll(&one, 1, (int)left);
		ssize_t done = ready > 0 ? recv(fd, at, bytes, 0) : ready;
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		at += done;
		bytes -= (size_t)done;
	}
	return true;
}

/* ---- the child ---- */

struct opened {
	struct plumb_code *code;
	enum plumb_code_state state;
	bool known;
};

struct child {
	int socket;
	PLUMB_VEC(struct opened) objects;
	PLUMB_VEC(char) out;
};

static void
put_bytes(struct child *child, const void *data, size_t bytes)
{
	const char *at = data;

	for (size_t i = 0; i < bytes; i++) {
		char *c = plumb_vec_add(&child->out);
		if (!c)
			_exit(1);
		*c = at[i];
	}
}

/* An unknown text is an empty one. */
static void
put_text(struct child *child, const char *text)
{
	put_bytes(child, text ? text : "", text ? strlen(text) + 1 : 1);
}

static struct opened *
open_object(struct child *child, struct question *question)
{
	char *path = NULL;

	while (child->objects.count <= question->object)
		if (!plumb_vec_add(&child->objects))
			_exit(1);
	struct opened *opened = &child->objects.items[question->object];
	if (!question->path_bytes)
		return opened->known ? opened : NULL;
	path = calloc(1, (size_t)question->path_bytes + 1);
	if (!path || !receive_all(child->socket, path, question->path_bytes, 0))
		_exit(1);
	question->wanted.path = path;
	opened->code = plumb_code_open(&question->wanted, &opened->state);
	opened->known = true;
	free(path);
	return opened;
}

static void
answer_question(struct child *child, struct question *question)
{
	struct plumb_code_place place;
	struct opened *opened = open_object(child, question);
	struct answer answer = { .state = opened ? opened->state : PLUMB_CODE_FAILED };
	struct plumb_code_facts facts = { 0 };

	child->out.count = 0;
	if (opened && opened->code) {
		plumb_code_look(opened->code, question->address, &place);
		plumb_code_facts(opened->code, &facts);
		answer.named = place.symbol != NULL;
		answer.bounded = place.bounded;
		answer.shared_name = place.shared_name;
		answer.start = place.start;
		answer.frames = place.count;
		answer.fetched = facts.fetched;
		answer.size = facts.bytes;
		place.operation = NULL;
		place.redispatch = false;
		if (question->operators)
			plumb_code_operator(opened->code, &place);
		answer.redispatch = place.redispatch;
		put_text(child, place.symbol);
		put_text(child, place.operation);
		for (uint32_t i = 0; i < place.count; i++) {
			put_bytes(child, &place.frames[i].line, sizeof place.frames[i].line);
			put_text(child, place.frames[i].name);
			if (place.frames[i].folder) {
				put_bytes(child, place.frames[i].folder,
				          strlen(place.frames[i].folder));
				put_bytes(child, "/", 1);
			}
			put_text(child, place.frames[i].file);
		}
	}
	answer.bytes = child->out.count;
	if (!send_all(child->socket, &answer, sizeof answer) ||
	    !send_all(child->socket, child->out.items, answer.bytes))
		_exit(0);
}

static void
run_child(int socket, pid_t parent)
{
	struct child child = { .socket = socket };
	struct rlimit memory = { MEMORY, MEMORY }, core = { 0, 0 };
	struct question question;
	int nothing = open("/dev/null", O_RDWR);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	if (nothing >= 0) {
		dup2(nothing, 0);
		dup2(nothing, 1);
		dup2(nothing, 2);
	}
	setrlimit(RLIMIT_CORE, &core);
	if (!SANITIZED) /* its shadow memory would count */
		setrlimit(RLIMIT_DATA, &memory);
	/* The parent counts a crash, so no handler of this program must see it. */
	for (int i = 0; i < 5; i++)
		signal((int[]){ SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL }[i], SIG_DFL);
	while (receive_all(socket, &question, sizeof question, 0))
		answer_question(&child, &question);
	_exit(0);
}

/* ---- the parent ---- */

/* What is known without a child. */
static enum plumb_code_state
look_first(const char *path)
{
	struct stat status;

	if (stat(path, &status))
		return PLUMB_CODE_ABSENT;
	return S_ISREG(status.st_mode) ? PLUMB_CODE_FINE : PLUMB_CODE_IRREGULAR;
}

static void
stop_child(struct plumb_symbolizer *s)
{
	if (!s->child)
		return;
	close(s->socket);
	kill(s->child, SIGKILL);
	while (waitpid(s->child, NULL, 0) < 0 && errno == EINTR)
		;
	s->child = 0;
	for (uint32_t i = 0; i < s->objects.count; i++)
		s->objects.items[i].told = false;
}

static bool
start_child(struct plumb_symbolizer *s)
{
	int pair[2];
	pid_t parent = getpid();

	if (s->child)
		return true;
	if (s->lost >= LIVES || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return false;
	pid_t child = fork();
	if (child == 0) {
		close(pair[0]);
		run_child(pair[1], parent);
	}
	close(pair[1]);
	if (child < 0) {
		close(pair[0]);
		return false;
	}
	s->child = child;
	s->socket = pair[0];
	return true;
}

static bool
ask_child(struct plumb_symbolizer *s, uint32_t number, uint64_t address, bool operators,
          struct answer *answer)
{
	struct object *object = &s->objects.items[number];
	struct question question = { .object = number,
		                     .address = address,
		                     .operators = operators,
		                     .wanted = object->wanted };
	int64_t end = plumb_clock_ms() + SECONDS * 1000;

	question.wanted.path = NULL;
	question.path_bytes = object->told ? 0 : (uint32_t)strlen(object->wanted.path);
	if (!send_all(s->socket, &question, sizeof question) ||
	    !send_all(s->socket, object->wanted.path, question.path_bytes) ||
	    !receive_all(s->socket, answer, sizeof *answer, end) || answer->bytes > PAYLOAD_MAX ||
	    answer->state >= PLUMB_CODE_STATES || answer->frames > PLUMB_CODE_FRAMES_MAX)
		return false;
	if (answer->bytes > s->room) {
		char *grown = realloc(s->payload, answer->bytes);
		if (!grown)
			return false;
		s->payload = grown;
		s->room = answer->bytes;
	}
	object->told = true;
	return receive_all(s->socket, s->payload, answer->bytes, end);
}

/* The next text of the payload; NULL when it is empty. False: there is none. */
static bool
take_text(const char **at, const char *end, const char **text)
{
	const char *stop = memchr(*at, '\0', (size_t)(end - *at));

	if (!stop)
		return false;
	*text = stop > *at ? *at : NULL;
	*at = stop + 1;
	return true;
}

/* The file may have misled the child, so what it says is checked, too. */
static bool
read_payload(const struct plumb_symbolizer *s, const struct answer *answer,
             struct plumb_code_place *place)
{
	const char *at, *end, *symbol;

	if (!answer->bytes)
		return answer->state != PLUMB_CODE_FINE;
	at = s->payload;
	end = at + answer->bytes;
	if (!take_text(&at, end, &symbol) || !take_text(&at, end, &place->operation))
		return false;
	place->redispatch = answer->redispatch;
	place->symbol = answer->named ? symbol : NULL;
	place->start = answer->start;
	place->bounded = answer->bounded;
	place->shared_name = answer->shared_name;
	for (uint32_t i = 0; i < answer->frames; i++) {
		struct plumb_code_frame *frame = &place->frames[i];
		frame->folder = NULL; /* the file is whole */
		if ((size_t)(end - at) < sizeof frame->line)
			return false;
		memcpy(&frame->line, at, sizeof frame->line);
		at += sizeof frame->line;
		if (!take_text(&at, end, &frame->name) || !take_text(&at, end, &frame->file))
			return false;
	}
	place->count = answer->frames;
	return true;
}

static enum plumb_code_state
look(struct plumb_symbolizer *s, uint32_t number, uint64_t address, bool operators,
     struct plumb_code_place *place)
{
	struct object *object = &s->objects.items[number];
	struct answer answer;

	place->symbol = place->operation = NULL;
	place->count = 0;
	place->bounded = place->shared_name = place->redispatch = false;
	place->start = 0;
	if (!object->state && !object->told)
		object->state = look_first(object->wanted.path);
	if (object->state)
		return object->state;
	if (!start_child(s))
		return object->state = PLUMB_CODE_FAILED;
	if (!ask_child(s, number, address, operators, &answer) ||
	    !read_payload(s, &answer, place)) {
		place->symbol = place->operation = NULL;
		place->count = 0;
		place->bounded = false;
		s->lost++;
		stop_child(s);
		return object->state = PLUMB_CODE_FAILED;
	}
	object->bytes = answer.size;
	object->fetched = answer.fetched;
	return object->state = answer.state;
}

enum plumb_code_state
plumb_symbolizer_look(struct plumb_symbolizer *s, uint32_t number, uint64_t address,
                      struct plumb_code_place *place)
{
	return look(s, number, address, false, place);
}

enum plumb_code_state
plumb_symbolizer_operator(struct plumb_symbolizer *s, uint32_t number, uint64_t address,
                          struct plumb_code_place *place)
{
	return look(s, number, address, true, place);
}

uint32_t
plumb_symbolizer_object(struct plumb_symbolizer *s, const struct plumb_code_wanted *wanted)
{
	struct object *object = plumb_vec_add(&s->objects);

	if (!object)
		return UINT32_MAX;
	object->wanted = *wanted;
	object->wanted.path = strdup(wanted->path);
	if (!object->wanted.path) {
		s->objects.count--;
		return UINT32_MAX;
	}
	return s->objects.count - 1;
}

uint64_t
plumb_symbolizer_bytes(const struct plumb_symbolizer *s, uint32_t object)
{
	return s->objects.items[object].bytes;
}

bool
plumb_symbolizer_fetched(const struct plumb_symbolizer *s, uint32_t object)
{
	return s->objects.items[object].fetched;
}

struct plumb_symbolizer *
plumb_symbolizer_new(void)
{
	return calloc(1, sizeof(struct plumb_symbolizer));
}

void
plumb_symbolizer_free(struct plumb_symbolizer *s)
{
	if (!s)
		return;
	stop_child(s);
	for (uint32_t i = 0; i < s->objects.count; i++)
		free((char *)(uintptr_t)s->objects.items[i].wanted.path);
	plumb_vec_free(&s->objects);
	free(s->payload);
	free(s);
}
