// Inlined calls, discriminators, templates and names in namespaces for the cases in cases.txt.
namespace shop {
template <class T> struct Box {
  T value;
  __attribute__((always_inline)) T twice() const {
    return value + value;
  }
};
volatile long total;
static volatile int stock[4];
namespace {
__attribute__((noinline)) int hidden(int n) {
  stock[n & 3] = n;
  return n + 1;
}
}
__attribute__((always_inline)) inline long add(long a, Box<long> b) {
  total = a;
  return a + b.twice();
}
__attribute__((noinline)) long weigh(const Box<long> &box, int n) {
  long sum = 0;
  for (int i = 0; i < n; i++) if (i & 1) sum += add(sum, box); else sum -= hidden(i);
  return sum;
}
}
extern "C" __attribute__((noinline)) int plain(int n) { return n * shop::stock[1]; }
int main(int n, char **) {
  shop::Box<long> box{n};
  auto call = [&](int by) { return shop::weigh(box, by); };
  return int(call(n)) + plain(n);
}
