// Prints what glibc printed for a double free, up to version 2.25.
#include "inventory.h"
#include <execinfo.h>
#include <stdio.h>
#include <unistd.h>

static int leaf(int account) {
  void *frames[64];
  dprintf(2, "*** Error in `./oldabort': double free or corruption (fasttop): 0x000055d0c0a013cb ***\n======= Backtrace: =========\n");
  int n = backtrace(frames, 64); // line: print
  backtrace_symbols_fd(frames, n, 2);
  dprintf(2, "======= Memory map: ========\n");
  char line[4096];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps))
    dprintf(2, "%s", line);
  dprintf(2, "Aborted (core dumped)\n");
  return account;
}

int main(int argc, char **) {
  int sum = inventory_run(leaf, argc * 16); // line: main
  return sum & 1;
}
