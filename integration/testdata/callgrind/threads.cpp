// Threads, templates and inlined calls, for profiles.
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace app {

template <class T> struct Pool {
	std::vector<T> v;
	__attribute__((noinline)) void grow(T n) {
		for (T i = 0; i < n; i++)
			v.push_back(i * i);
	}
};

static std::mutex lock;
static int notes;

__attribute__((noinline)) void note(const std::string &s) {
	std::lock_guard<std::mutex> held(lock);
	notes += s.size();
}

__attribute__((noinline)) static int work(int k) {
	Pool<unsigned long> p;
	p.grow(100 * k);
	note("worker " + std::to_string(k));
	return p.v.size();
}

} // namespace app

int main() {
	std::vector<std::thread> all;
	int r[4];
	for (int i = 0; i < 4; i++)
		all.emplace_back([i, &r] { r[i] = app::work(i + 1); });
	for (auto &t : all)
		t.join();
	return r[0] != 100;
}
