// Prints its backtrace as glog does, with addresses alone. The first line has the base of the program,
// which no dialect reads.
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>

extern char __ehdr_start[];

__attribute__((noinline)) static void show(void) {
	void *at[64];
	int n = backtrace(at, 64);
	printf("base %p\n", (void *)__ehdr_start);
	for (int i = 0; i < n; i++)
		printf("    @     %p  (unknown)\n", at[i]);
	fflush(stdout);
}

__attribute__((noinline)) static int compare(const void *a, const void *b) {
	static int shown;
	if (!shown++)
		show();
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static int settle(int n) {
	int all[8] = {n, 5, 4, 3, 2, 1, 0, 9};
	qsort(all, 8, sizeof *all, compare);
	return all[0];
}

__attribute__((noinline)) static int count(int n) { return n > 3 ? settle(n) + 1 : count(n + 1) + 1; }

int main(int argc, char **argv) {
	(void)argv;
	return count(argc) == 42;
}
