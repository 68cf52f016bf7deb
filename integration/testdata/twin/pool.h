// A class whose call is inlined: the innermost frame of a trace.
#pragma once
namespace ledger {
template <class Visitor> struct Pool {
  Visitor visitor;
  __attribute__((always_inline)) inline int visit(int account) {
    int left = visitor(account); // line: visit
    return left + 1;
  }
};
} // namespace ledger
