// Allocates memory under glibc's mtrace, which logs the caller of each function of the allocator.
#include "inventory.h"
#include <mcheck.h>
#include <stdlib.h>

static void *volatile block;

static int leaf(int account) {
  mtrace();
  block = malloc(account);       // line: malloc
  block = realloc(block, 1 << 16); // line: realloc
  free(block);                   // line: free
  muntrace();
  return account;
}

int main(int argc, char **) {
  int sum = inventory_run(leaf, argc * 16);
  return sum & 1;
}
