// Dies of a fault that Abseil's handler reports. With "maps", prints the mappings before.
#include "inventory.h"
#include "maps.h"
#include <absl/debugging/failure_signal_handler.h>
#include <absl/debugging/symbolize.h>
#include <string.h>

static int dying_leaf(int account) {
  int sum = fall(account); // line: dying-leaf
  return sum + 1;
}

int main(int argc, char **argv) {
  absl::InitializeSymbolizer(argv[0]);
  absl::InstallFailureSignalHandler(absl::FailureSignalHandlerOptions());
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "maps"))
      print_maps();
  int sum = inventory_run(dying_leaf, 16); // line: main
  return sum & 1;
}
