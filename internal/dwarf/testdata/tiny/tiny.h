static inline int twice(int x) {
  return x * 2;
}

static inline int thrice(int x) {
  return twice(x) +
         x;
}
