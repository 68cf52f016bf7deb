// A program with five errors: a read beyond a block, a write beyond it, a read of freed memory, a
// jump that depends on memory without a value, and a leak. With -DSIXTH it also has a mismatched free.
// An argument is the number of children that it forks; each has the errors, too.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define KEEP(p) asm volatile("" : : "r"(p) : "memory")

namespace store {

template <class T> static inline T peek(const T *p) { return *p; }

template <class T> struct Shelf {
  T *items;
  int size;
  NOINLINE explicit Shelf(int n) : items(new T[n]), size(n) { KEEP(items); }
  NOINLINE T beyond() { return peek(items + size); }
  NOINLINE void put(T x) { items[size + 1] = x; KEEP(items); }
  NOINLINE void clear() { delete[] items; KEEP(items); }
};

NOINLINE int undecided(Shelf<int> &s) {
  int n = s.items[0];
  KEEP(&n);
  if (n > 3)
    puts("much");
  return n;
}

NOINLINE void lose(const std::string &name) {
  char *p = static_cast<char *>(malloc(name.size() + 100));
  KEEP(p);
  p = nullptr;
  KEEP(p);
}

#ifdef SIXTH
NOINLINE void mismatch() {
  int *p = new int[3];
  KEEP(p);
  free(p);
  KEEP(p); // not the last call
}
#endif

} // namespace store

NOINLINE static int work() {
  store::Shelf<int> s(10);
  int sum = s.beyond();
  s.put(1);
  sum += store::undecided(s);
  s.clear();
  sum += store::peek(s.items + 1);
  store::lose("a");
#ifdef SIXTH
  store::mismatch();
#endif
  return sum;
}

int main(int argc, char **argv) {
  volatile int sum = 0;
  for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--)
    if (fork() == 0) {
      sum += work();
      return 0;
    }
  while (wait(nullptr) > 0)
    ;
  sum += work();
  return 0;
}
