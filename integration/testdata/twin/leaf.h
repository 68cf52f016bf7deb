// The innermost functions of programs that print their own backtrace: leaf prints it, and dying_leaf
// dies, so that the handler of the signal prints it. The program defines print.
#pragma once
#include "inventory.h"

static void print();

static int leaf(int account) {
  print(); // line: leaf
  return account;
}

static int dying_leaf(int account) {
  int sum = fall(account); // line: dying-leaf
  return sum + 1;
}
