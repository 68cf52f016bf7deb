// Dies of a write to an address that is not mapped.
#include "inventory.h"

static int leaf(int account) {
  int sum = fall(account); // line: leaf
  return sum + 1;
}

int main(int argc, char **) {
  int sum = inventory_run(leaf, argc * 16); // line: main
  return sum & 1;
}
