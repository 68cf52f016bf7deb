// The program behind the layout tests: inlined calls, a global with members,
// a function without line information (in a.s).
struct Entry { int key, refs; };
Entry table[8] = {{1, 2}};
long counter = 7;
extern "C" int bare(int);

namespace ns {
[[gnu::always_inline]] inline int inner(int x) { table[3].refs += x; return x * 3 + bare(x); }
[[gnu::always_inline]] inline int middle(int x) { return inner(x) + 1; }
struct Foo {
  template <class T> [[gnu::noinline]] T run(T x) { return middle(x) - 1; }
};
} // namespace ns

[[gnu::noinline]] int leaf(int x) { return bare(x) + int(counter); }

int main(int argc, char **) { return ns::Foo().run<int>(argc) + leaf(argc); }
