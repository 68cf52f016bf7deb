// Dies of a fault, and has LLVM's library print the stack, as LLVM's tools do.
#include "inventory.h"
#include <string.h>

// as in llvm/Support/Signals.h
namespace llvm {
struct StringRef {
  const char *data;
  size_t size;
};
namespace sys {
void PrintStackTraceOnErrorSignal(StringRef program, bool disable_crash_reporting);
}
} // namespace llvm

static int leaf(int account) {
  int sum = fall(account); // line: leaf
  return sum + 1;
}

int main(int argc, char **argv) {
  llvm::sys::PrintStackTraceOnErrorSignal({argv[0], strlen(argv[0])}, true);
  int sum = inventory_run(leaf, argc * 16); // line: main
  return sum & 1;
}
