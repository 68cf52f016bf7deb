#include "shape.h"

static inline __attribute__((always_inline)) int square(int x) { return x * x + 1; }

static __attribute__((noinline)) int helper(int n) {
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += square(i);
	return sum;
}

int area(int n) { return helper(n) + helper(n / 2); }

int perimeter(int n, int (*callback)(int)) { return callback(n) + area(n); }
