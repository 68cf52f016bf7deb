// A program that allocates and computes below functions of its own and of its library, for profiles.
#include <cstdlib>
#include <string>
#include <vector>

struct Shelf {
  std::vector<char *> boxes;
  void add(int size);
};

extern "C" unsigned long count(unsigned long n);

namespace {

template <class T> __attribute__((noinline)) T square(T n) {
  volatile T sum = 0;
  for (T i = 0; i < n; i++) sum = sum + i * i;
  return sum;
}

inline __attribute__((always_inline)) unsigned long twice(unsigned long n) { return square(n) + square(n + 1); }

__attribute__((noinline)) void fill(Shelf &s, int n) {
  for (int i = 0; i < n; i++) s.add(i);
}

__attribute__((noinline)) unsigned long work(unsigned long n) { return twice(n) + count(n); }

} // namespace

std::string *kept;

int main(int argc, char **argv) {
  Shelf *s = new Shelf;
  fill(*s, 300);
  kept = new std::string(100000, 'x');
  unsigned long n = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000;
  return work(n) == 7 && kept->empty();
}
