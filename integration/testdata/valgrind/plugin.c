// A library that is loaded, unloaded and loaded again.
#include <stdlib.h>

static inline __attribute__((always_inline)) int past(const char *p, int n) { return p[n + 8]; }

__attribute__((noinline)) static int hidden(int n)
{
	char *p = malloc(8);
	int r = past(p, n);
	free(p);
	return r;
}

int plugged(int n) { return hidden(n) + 1; }
