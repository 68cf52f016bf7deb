#include "shapes.h"

struct pair { int a, b; };

static inline int clip(int x, int lo, int hi) {
  if (x < lo)
    return lo;
  return x > hi ? hi : x;
}

static inline __attribute__((always_inline)) int mix(struct pair p) {
  int s = 0;
  for (int i = 0; i < p.a; i++)
    s += clip(p.b * i, 3, 77) ^ clip(s, -5, 5);
  return s;
}

__attribute__((noinline)) static int deep(int n, struct pair *p) {
  if (n <= 0)
    return mix(*p);
  p->b += n;
  return deep(n - 1, p) + mix((struct pair){n, p->a});
}

int plain(int n) {
  struct pair p = {n, 2 * n};
  switch (n % 4) {
  case 0: return deep(n, &p);
  case 1: return mix(p) - 1;
  case 2: {
    int v = clip(n, 1, 9);
    return v * deep(v, &p);
  }
  }
  return p.b;
}

int unreferenced(int n) { return plain(n) + 1; } /* dropped by --gc-sections */
