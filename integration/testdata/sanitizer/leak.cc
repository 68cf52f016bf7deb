// Loses memory that an inlined call has allocated.
#include <stdlib.h>

struct Box {
  void *value;
  inline void fill() { value = malloc(7); }
};

__attribute__((noinline)) static void lose() {
  Box box;
  box.fill();
  asm volatile("" ::"r"(box.value));
}

int main() {
  lose();
  lose();
  return 0;
}
