// A program for profiles: recursion, of one function and of two, callbacks into
// and out of libraries, inlined calls, and code that is jumped to.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "shape.h"

static __attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

static __attribute__((noinline)) int odd(int n);
static __attribute__((noinline)) int even(int n) { return n == 0 ? 1 : odd(n - 1) + 0; }
static __attribute__((noinline)) int odd(int n) { return n == 0 ? 0 : even(n - 1) + 0; }

static __attribute__((noinline)) int callback(int n) { return in_header(n); }

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static __attribute__((noinline)) int tail(int n) { return in_header(n) + fib(n % 5); }
__attribute__((noinline)) int jumps(int n) {
	if (n > 1)
		return tail(n + 1);
	return 3;
}

int main(int argc, char **argv) {
	int v[100];
	for (int i = 0; i < 100; i++)
		v[i] = i * 37 % 101;
	qsort(v, 100, sizeof *v, compare);
	int r = fib(12) + even(20) + perimeter(40, callback) + jumps(argc) + tail(7);
	if (argc > 1) {
		void *lib = dlopen(argv[1], RTLD_NOW);
		int (*run)(int) = lib ? (int (*)(int))dlsym(lib, "plugin_run") : 0;
		if (!run)
			return 1;
		r += run(50);
	}
	printf("%d %d\n", r, v[3]);
	return 0;
}
