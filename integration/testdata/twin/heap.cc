// Writes a heap profile in the form of gperftools: allocations with the addresses of their calls, and
// the maps of the process. With the argument "malloc" it only allocates.
#include "inventory.h"
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>

static int allocating_leaf(int account) {
  static void *volatile kept;
  kept = malloc(4 << 20); // line: malloc
  return kept != nullptr;
}

static int leaf(int account) {
  void *frames[64];
  int n = backtrace(frames, 64); // line: leaf
  printf("     1: %8d [     1: %8d] @", account, account);
  for (int i = 0; i < n; i++)
    printf(" %p", frames[i]);
  printf("\n");
  return account;
}

int main(int argc, char **) {
  if (argc > 1)
    return inventory_run(allocating_leaf, 1) & 8; // line: allocating
  printf("heap profile:      3:     3000 [     3:     3000] @ heapprofile\n");
  int sum = inventory_run(leaf, argc); // line: main
  sum += inventory_run(leaf, argc + sum); // line: second
  printf("\nMAPPED_LIBRARIES:\n");
  char line[4096];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps))
    fputs(line, stdout);
  return sum & 1;
}
