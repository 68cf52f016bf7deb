#include "trace.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace svc {

template <typename T> struct Traced {
	using value_type = T;
	Traced() = default;
	template <typename U> Traced(const Traced<U> &) {}
	T *allocate(std::size_t n) { return static_cast<T *>(trace_alloc(n * sizeof(T))); }
	void deallocate(T *p, std::size_t) { trace_free(p); }
	template <typename U> bool operator==(const Traced<U> &) const { return true; }
	template <typename U> bool operator!=(const Traced<U> &) const { return false; }
};

template <typename T> class Pool {
	std::vector<T, Traced<T>> items;

public:
	NOINLINE T grow(T n) {
		items.push_back(n);
		return items.back();
	}
};

namespace {
struct Visitor {
	NOINLINE int operator()(int n) const { return n + (trace_free(trace_alloc(n)), 1); }
};
} // namespace

NOINLINE int run(int n) {
	Pool<unsigned long> pool;
	for (int i = 0; i < n; i++)
		pool.grow(i);
	std::map<int, std::string, std::less<int>, Traced<std::pair<const int, std::string>>> names;
	names[3] = "three";
	std::vector<int> v = {1, 2, 3};
	std::transform(v.begin(), v.end(), v.begin(), Visitor{});
	auto lambda = [&](int x) { return trace_alloc(x) != nullptr; };
	return std::count_if(v.begin(), v.end(), lambda);
}

} // namespace svc

int main(int, char **argv) {
	trace_begin(argv[0]);
	trace_context = 2;
	int n = svc::run(5);
	trace_attach(0x9000, n, "key");
	trace_detach(0x9000);
	fflush(stdout);
}
