/* The same program for every architecture: inlined calls, a local function, a call through a pointer, one from another. */

typedef int (*step)(int);

volatile int sink;
step indirect;

static inline __attribute__((always_inline)) int inner(int x) {
	sink = x;
	return x + sink;
}

static inline __attribute__((always_inline)) int middle(int x) {
	return inner(x) * inner(x + 1);
}

static __attribute__((noinline)) int local(int x) {
	sink = x;
	return middle(x) - 1;
}

__attribute__((noinline)) int outer(int x) {
	int y = local(x) + 1;
	y += indirect(y);
	sink = y;
	return y ^ middle(y);
}
