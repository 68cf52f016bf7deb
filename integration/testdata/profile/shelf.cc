// The library of shop.cc.
#include <cstdlib>
#include <vector>

static inline __attribute__((always_inline)) char *fresh(std::size_t size) { return static_cast<char *>(std::malloc(size)); }

__attribute__((noinline)) static char *box(int size) {
  char *p = fresh(500 + size);
  p[0] = 1;
  return p;
}

struct Shelf {
  std::vector<char *> boxes;
  void add(int size);
};

void Shelf::add(int size) { boxes.push_back(box(size)); }

extern "C" __attribute__((noinline)) unsigned long count(unsigned long n) {
  volatile unsigned long sum = 0;
  for (unsigned long i = 0; i < n; i++) sum = sum + i;
  return sum;
}
