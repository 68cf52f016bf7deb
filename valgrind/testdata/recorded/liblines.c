// A library whose functions have names and lines in debug information only.
#include "lines.h"

// More code than a page, so that a report leaves several places for the library open.
__asm__(".text\n.skip 8192, 0xcc");

static int read_it(const char *p) { return p[8] ? 1 : 2; }

static inline __attribute__((always_inline)) int innermost(const char *p, int i) { return p[i]; }

static inline __attribute__((always_inline)) int middle(const char *p)
{
	return innermost(p, 12) + 1;
}

static int inlined(const char *p)
{
	int n = middle(p);
	return n ? n : 3;
}

static int again(int depth, const char *p)
{
	if (depth == 0)
		return p[16];
	return again(depth - 1, p) + 1;
}

static const struct operations all = {read_it, inlined, again};

const struct operations *operations(void) { return &all; }
