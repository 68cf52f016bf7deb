// Prints its stack with backtrace_symbols_fd. With "signal", from the handler of a fault.
#include "leaf.h"
#include <execinfo.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void print() {
  void *frames[64];
  int n = backtrace(frames, 64); // line: print
  backtrace_symbols_fd(frames, n, 2); // line: symbols
}

static void on_fault(int) {
  print(); // line: handler
  _exit(1); // line: exit
}

int main(int argc, char **argv) {
  bool dies = argc > 1 && !strcmp(argv[1], "signal");
  if (dies)
    signal(SIGSEGV, on_fault);
  int sum = inventory_run(dies ? dying_leaf : leaf, argc * 16); // line: main
  return sum & 1;
}
