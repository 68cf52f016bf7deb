#include "tiny.h"

int table[4];

static int shrink(int n) {
  return thrice(n) / 7;
}

__attribute__((cold, noinline)) void report(int n) {
  table[0] = thrice(n);
}

int grow(int n) {
  if (__builtin_expect(n < 0, 0)) {
    report(shrink(n));
    return -1;
  }
  for (int i = 0; i < 4; i++)
    table[i] += thrice(i * n);
  return shrink(table[n & 3]);
}

int dropped(int n) { return shrink(n) + 1; }

void _start(void) {
  grow(table[1]);
  for (;;)
    ;
}
