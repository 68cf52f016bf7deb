// inventory: books orders, closes the book, and asks it once more. It prints its own crash as symbolizer markup.
#include <stdint.h>

#include "crashlog.h"
#include "ledger.h"

namespace inventory {

struct Shelf {
  const char *name;
  uint32_t refs;
  int64_t balance;
};

Shelf shelves[4] = {{"nails", 0, 0}, {"screws", 0, 0}, {"paint", 0, 0}, {"glue", 0, 0}};

void on_exit() { crashlog::line(crashlog::kInfo, "goodbye"); }

template <typename T>
inline T clamp(T value, T low, T high) {
  return value < low ? low : value > high ? high : value;
}

inline int64_t balance_of(const ledger::Book &book, uint32_t shelf) {
  return clamp<int64_t>(book.total(shelf).cents, 0, 1000000);
}

__attribute__((noinline)) int64_t settle(const ledger::Book &book) {
  int64_t all = 0;
  for (uint32_t i = 0; i < 4; i++) {
    shelves[i].refs++;
    shelves[i].balance = balance_of(book, i);
    all += shelves[i].balance;
  }
  return all;
}

template <typename Job>
__attribute__((noinline)) int run(Job job) {
  int64_t cents = job();
  crashlog::line(crashlog::kInfo, "balance %ld.%02ld", cents / 100, cents % 100);
  return 0;
}

}  // namespace inventory

int main() {
  using namespace inventory;
  crashlog::install(&shelves[2].refs, "_ZN9inventory7on_exitEv");
  crashlog::line(crashlog::kInfo, "inventory 1.4 ready, 4 shelves");
  ledger::Book book;
  for (uint32_t i = 0; i < 12; i++) book.add({i % 4, i, {1250}});
  run([&] { return settle(book); });
  crashlog::line(crashlog::kWarn, "shelf %s is low", shelves[3].name);
  run([&] {
    book.close();
    return int64_t{0};
  });
  return run([&] { return settle(book); });
}
