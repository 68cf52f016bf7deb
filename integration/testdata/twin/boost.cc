// Prints its stack with Boost.Stacktrace. With "maps", prints the mappings before.
#include "inventory.h"
#include "maps.h"
#include <boost/stacktrace.hpp>
#include <iostream>

static int leaf(int account) {
  std::cerr << boost::stacktrace::stacktrace(); // line: leaf
  return account;
}

int main(int argc, char **) {
  if (argc > 1)
    print_maps();
  int sum = inventory_run(leaf, 16); // line: main
  return sum & 1;
}
