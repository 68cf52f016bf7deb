#include "ledger.h"

#include "pool.h"

namespace ledger {
namespace {

using Orders = Pool<Order, 64>;

template <typename Values>
int64_t sum(const Values &values, uint32_t shelf) {
  int64_t cents = 0;
  for (const Order *o = values.next(0); o != nullptr; o = values.next(values.index(o) + 1))
    if (o->shelf == shelf) cents += o->price.cents * o->count;
  return cents;
}

}  // namespace

Book::Book() : orders_(Orders::create()) {}

__attribute__((noinline)) void Book::add(const Order &order) {
  if (Order *slot = static_cast<Orders *>(orders_)->add()) *slot = order;
}

__attribute__((noinline)) Money Book::total(uint32_t shelf) const {
  return Money{sum(*static_cast<Orders *>(orders_), shelf)};
}

__attribute__((noinline)) void Book::close() {
  Orders::destroy(static_cast<Orders *>(orders_));  // orders_ stays: the mistake that this program shows
}

}  // namespace ledger
