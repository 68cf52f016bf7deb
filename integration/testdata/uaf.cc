// A use after free: the report has three stacks, inlined calls and templates in each of them.
#include <cstdlib>

namespace shop {

template <typename T>
struct Box {
  T *value;
  explicit Box(T v) : value(static_cast<T *>(std::malloc(sizeof(T) * 4))) { *value = v; }
  void drop() { std::free(value); }
  T get(int i) const { return value[i]; }
};

static inline long weigh(const Box<long> &box, int i) { return box.get(i) * 2; }

__attribute__((noinline)) static Box<long> pack(long v) { return Box<long>(v); }

__attribute__((noinline)) static void unpack(Box<long> &box) { box.drop(); }

template <typename F>
__attribute__((noinline)) int run(F f) {
  return static_cast<int>(f()) + 1;
}

}  // namespace shop

int main(int argc, char **) {
  shop::Box<long> box = shop::pack(argc);
  int a = shop::run([&] {
    shop::unpack(box);
    return 1L;
  });
  return a + shop::run([&] { return shop::weigh(box, argc); });
}
