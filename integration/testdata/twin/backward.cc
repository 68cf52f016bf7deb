// Prints its stack with backward-cpp. With "signal", dies of a fault that backward's handler reports.
#include "inventory.h"
#include <backward.hpp>
#include <iostream>
#include <string.h>

static int leaf(int account) {
  backward::StackTrace trace;
  trace.load_here(64); // line: leaf
  backward::Printer().print(trace, std::cerr);
  return account;
}

static int dying_leaf(int account) {
  int sum = fall(account); // line: dying-leaf
  return sum + 1;
}

int main(int argc, char **argv) {
  backward::SignalHandling handling;
  bool dies = argc > 1 && !strcmp(argv[1], "signal");
  int sum = inventory_run(dies ? dying_leaf : leaf, 16); // line: main
  return sum & 1;
}
