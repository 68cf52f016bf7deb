// Dies in a C function of a Go program. "unwinder" prints C frames as a program with its own
// traceback of C frames does.
package main

/*
static int fall(int account) {
  *(volatile int *)(unsigned long)(account & 8) = account; // line: c-fall
  return account + 5;
}

static __attribute__((noinline)) int settle(int account) {
  int sum = fall(account); // line: c-settle
  return sum * 2;
}
*/
import "C"

func main() {
	println(C.settle(16))
}
