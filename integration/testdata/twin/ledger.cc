// The shared library of a program that prints a backtrace: each function calls the next one, and
// none is a tail call. The last one is static, so that no export names it.
#include "pool.h"

namespace ledger {
static __attribute__((noinline)) int settle(int (*leaf)(int), int account) {
  Pool<int (*)(int)> pool{leaf};
  int sum = pool.visit(account); // line: settle
  return sum * 2;
}

struct Book {
  int close(int (*leaf)(int), int account);
};

__attribute__((noinline)) int Book::close(int (*leaf)(int), int account) {
  int sum = settle(leaf, account); // line: close
  return sum + 3;
}
} // namespace ledger

extern "C" __attribute__((noinline)) int ledger_audit(int (*leaf)(int), int account) {
  ledger::Book book;
  int sum = book.close(leaf, account); // line: audit
  return sum + 4;
}
