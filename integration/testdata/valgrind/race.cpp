// What Helgrind and DRD complain of, in C++.
#include <map>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <string>
#include <thread>
#include <vector>

namespace app {

int plain;
std::mutex first, second;

template <class T> struct Box {
	std::vector<T> items;
	__attribute__((noinline)) void add(T t)
	{
		plain += 1;
		items.push_back(t);
	}
	inline __attribute__((always_inline)) int count() const { return items.size() + plain; }
};

static Box<int> box;
static Box<std::string> words;

__attribute__((noinline)) static void in_order()
{
	std::lock_guard<std::mutex> a(first);
	std::lock_guard<std::mutex> b(second);
	words.add("word");
}

__attribute__((noinline)) static void out_of_order()
{
	std::lock_guard<std::mutex> b(second);
	std::lock_guard<std::mutex> a(first);
	words.add("other");
}

static void work(int i)
{
	pthread_setname_np(pthread_self(), i == 1 ? "holder<&>" : "{{{reset}}}");
	box.add(i);
	if (i == 1)
		in_order();
	auto later = [i](int n) { return box.count() + n * i; };
	plain = later(3);
}

} // namespace app

int main()
{
	std::thread one(app::work, 1);
	std::thread two(app::work, 2);
	one.join();
	two.join();
	app::out_of_order();
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_unlock(&m);
	auto leaked = new std::map<std::string, std::unique_ptr<int>>;
	(*leaked)["key"] = std::make_unique<int>(7);
	leaked = nullptr;
	return app::box.count() == 0;
}
