// Dies of a failed check of glog. With "signal", dies of a fault that glog's handler reports. With
// "maps", prints the mappings before.
#include "inventory.h"
#include "maps.h"
#include <glog/logging.h>
#include <string.h>

static int leaf(int account) {
  LOG_IF(FATAL, account > 0) << "out of stock"; // line: leaf
  return account;
}

static int dying_leaf(int account) {
  int sum = fall(account); // line: dying-leaf
  return sum + 1;
}

int main(int argc, char **argv) {
  google::InitGoogleLogging(argv[0]);
  google::InstallFailureSignalHandler();
  bool dies = false;
  for (int i = 1; i < argc; i++) {
    dies = dies || !strcmp(argv[i], "signal");
    if (!strcmp(argv[i], "maps"))
      print_maps();
  }
  int sum = inventory_run(dies ? dying_leaf : leaf, 16); // line: main
  return sum & 1;
}
