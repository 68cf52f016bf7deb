// Spends its time in mix, which is inlined in work, and in compare, which libc calls.
#include <stdio.h>
#include <stdlib.h>

struct order {
  long id, price;
};

static inline long mix(long n) {
  n ^= n << 13;
  n ^= n >> 7;
  return n ^ n << 17;
}

__attribute__((noinline, noclone)) static long work(long n, long seed) {
  long sum = seed;
  for (long i = 0; i < n; i++) sum += mix(sum + i);
  return sum;
}

static int compare(const void *a, const void *b) {
  const struct order *x = a, *y = b;
  return (x->price > y->price) - (x->price < y->price);
}

__attribute__((noinline, noclone)) static long sorted(struct order *all, int n, long seed) {
  for (int i = 0; i < n; i++) all[i] = (struct order){i, mix(seed + i)};
  qsort(all, n, sizeof *all, compare);
  return all[n / 2].price;
}

int main(void) {
  static struct order all[4096];
  long sum = 0;
  for (int round = 0; round < 300; round++) sum += work(400000, round) + sorted(all, 4096, round);
  printf("%d\n", sum != 0);
  return 0;
}
