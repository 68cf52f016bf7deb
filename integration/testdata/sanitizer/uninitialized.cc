// Decides by memory that was never written, in an inlined call.
#include <stdlib.h>

struct Box {
  int *values;
  inline int get(int i) { return values[i]; }
};

__attribute__((noinline)) static int look(Box &box, int i) {
  if (box.get(i))
    return 3;
  return 4;
}

int main(int argc, char **) {
  Box box{static_cast<int *>(malloc(40))};
  return look(box, argc);
}
