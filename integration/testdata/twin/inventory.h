// What a program that prints a backtrace has in common with the others: the functions between main
// and the library, and a leaf that a signal interrupts. A program defines leaf, which prints the
// backtrace or dies, and passes it to inventory_run.
#pragma once

extern "C" int ledger_audit(int (*leaf)(int), int account);

static __attribute__((always_inline)) inline int count(int (*leaf)(int), int account) {
  int sum = ledger_audit(leaf, account); // line: count
  return sum - 1;
}

__attribute__((noinline)) int inventory_run(int (*leaf)(int), int account) {
  int sum = count(leaf, account); // line: run
  return sum * 3;
}

// A place at which the program dies: a write to an address that is not mapped.
__attribute__((noinline)) int fall(int account) {
  *(volatile int *)(unsigned long)(account & 8) = account; // line: fall
  return account + 5;
}
