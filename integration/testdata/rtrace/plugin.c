#include <stddef.h>

static inline __attribute__((always_inline)) void *inner(void *(*alloc)(size_t), size_t n) { return alloc(n + 1); }

static __attribute__((noinline)) void *middle(void *(*alloc)(size_t), size_t n) {
	void *p = inner(alloc, n);
	__asm__ volatile("");
	return p;
}

void plugin_run(void *(*alloc)(size_t)) {
	middle(alloc, 10);
	inner(alloc, 20);
	__asm__ volatile("");
}
