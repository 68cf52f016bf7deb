// libledger.so: what was ordered, per shelf.
#pragma once
#include <stdint.h>

namespace ledger {

struct Money {
  int64_t cents;
};

struct Order {
  uint32_t shelf;
  uint32_t count;
  Money price;
};

class Book {
 public:
  Book();
  void add(const Order &order);
  Money total(uint32_t shelf) const;  // sum of all orders of one shelf
  void close();                       // frees the orders

 private:
  void *orders_;
};

}  // namespace ledger
