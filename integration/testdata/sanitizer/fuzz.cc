// A fuzz target that dies in an inlined call.
#include <stddef.h>
#include <stdint.h>

static inline void check(const uint8_t *data, size_t size) {
  if (size > 2 && data[0] == 'a')
    __builtin_trap();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  check(data, size);
  return 0;
}
