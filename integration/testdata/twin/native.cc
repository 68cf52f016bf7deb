// A library whose function inventory_die dies, for programs in other languages.
#include "inventory.h"

static int leaf(int account) {
  int sum = fall(account); // line: leaf
  return sum + 1;
}

extern "C" __attribute__((visibility("default"))) int inventory_die(void) {
  int sum = inventory_run(leaf, 16); // line: die
  return sum + 6;
}
