// Spends its time in templates and in lambdas: some are inlined, some have long names.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace shop {
template <typename T> struct Box {
  T value;
  T weigh(int n) const {
    T sum = value;
    for (int i = 0; i < n; i++) sum = sum * 31 + (sum >> 3);
    return sum;
  }
};

namespace {
template <typename T, typename F> __attribute__((noinline)) T each(const std::vector<Box<T>> &all, F f) {
  T sum{};
  for (const auto &box : all) sum += f(box);
  return sum;
}
} // namespace

struct Shelf {
  std::map<std::string, long> places;
  virtual ~Shelf() = default;
  __attribute__((noinline)) virtual long find(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) sum += places["box " + std::to_string(i % 64)]++;
    return sum;
  }
};
} // namespace shop

int main() {
  std::vector<shop::Box<unsigned long>> all(200, {7});
  shop::Shelf shelf;
  unsigned long sum = 0;
  for (int round = 0; round < 250; round++) {
    sum += shop::each(all, [round](const shop::Box<unsigned long> &box) { return box.weigh(2000 + round); });
    sum += static_cast<unsigned long>(shelf.find(3000));
  }
  std::printf("%d\n", sum != 0);
}
