// Functions whose cold parts have code of their own and of calls that were inlined into them.

volatile int seen;

__attribute__((cold, noinline)) void stop(int n) {
    seen = n;
    __builtin_trap();
}

static inline __attribute__((always_inline)) void note(int n) {
    seen = n + 1;
    stop(n);
}

static inline __attribute__((always_inline)) void report(int n) {
    seen = n + 2;
    note(n);
}

// work's cold part begins with code of its own.
__attribute__((noinline)) int work(int n) {
    if (__builtin_expect(n > 100, 0)) {
        seen = 7;
        note(n);
    }
    seen = n;
    return n * 3;
}

// short_work's cold part is one inlined call.
__attribute__((noinline)) int short_work(int n) {
    if (__builtin_expect(n > 200, 0))
        note(n);
    seen = n;
    return n * 5;
}

namespace inner {
// The same name as that of another function; a call within a call; two cold places.
__attribute__((noinline)) int work(int n) {
    if (__builtin_expect(n > 300, 0)) {
        seen = 8;
        report(n);
    }
    seen = n * 2;
    if (__builtin_expect(n < -300, 0)) {
        seen = 9;
        report(-n);
    }
    return n * 7;
}
}

// A lambda with a cold part.
__attribute__((noinline)) int outer(int n) {
    auto twice = [](int k) __attribute__((noinline)) {
        if (__builtin_expect(k > 400, 0)) {
            seen = 10;
            note(k);
        }
        return k * 11;
    };
    return twice(n) + twice(n + 1);
}

int main(int argc, char **) {
    return work(argc) + short_work(argc) + inner::work(argc) + outer(argc);
}
