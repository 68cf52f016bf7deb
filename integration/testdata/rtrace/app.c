#include "trace.h"

#include <dlfcn.h>

struct item { struct item *next; };

ALWAYS void *grow(size_t n) { return trace_alloc(n * 8); }
ALWAYS struct item *push(struct item *list, size_t n) {
	struct item *i = grow(n);
	i->next = list;
	return i;
}

static NOINLINE struct item *deep(struct item *list, int n) {
	if (n == 0)
		return push(list, 7);
	list = deep(list, n - 1);
	__asm__ volatile("");
	return list;
}

static NOINLINE void drain(struct item *list) {
	while (list) {
		struct item *next = list->next;
		trace_free(list);
		list = next;
	}
}

static int descending(const void *a, const void *b) {
	if (trace_index < 20) // the caller is in the C library
		trace_free(trace_alloc(3));
	return *(const int *)b - *(const int *)a;
}

// Nothing comes behind the call: its return address is another function's.
static NOINLINE __attribute__((noreturn)) void last(void) {
	trace_alloc(99);
	trace_context = 0;
	fflush(stdout);
	_exit(0);
}

static NOINLINE __attribute__((noreturn)) void finish(void) { last(); }

int main(int argc, char **argv) {
	trace_begin(argv[0]);
	printf("# a comment that does not stay\n## one that does {{{reset}}} \033[31m\n");
	trace_context = 1;
	struct item *list = NULL;
	for (int i = 1; i < 4; i++)
		list = push(list, i);
	trace_context = 3;
	list = deep(list, 3);
	int numbers[] = {3, 1, 2};
	qsort(numbers, 3, sizeof *numbers, descending);
	trace_context = 2;
	trace_attach(0x7000, 4096, "0x1088018 of two");
	trace_attach(0x7000, 4096, "again");
	if (argc > 1) {
		void *lib = dlopen(argv[1], RTLD_NOW);
		trace_maps();
		void (*run)(void *(*)(size_t)) = (void (*)(void *(*)(size_t)))dlsym(lib, "plugin_run");
		run(trace_alloc);
	}
	trace_detach(0x7000);
	drain(list);
	printf("& maps : /tmp/maps\nwhat is this\n");
	finish();
}
