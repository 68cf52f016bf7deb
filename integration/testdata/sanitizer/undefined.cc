// Adds beyond the range of int, in an inlined call.
#include <limits.h>

struct Sum {
  int n;
  inline int plus(int more) { return n + more; }
};

__attribute__((noinline)) static int over(int n) {
  Sum sum{INT_MAX};
  return sum.plus(n);
}

int main(int argc, char **) { return over(argc) == 0; }
