// A program for comparisons: built with -DAFTER it has a change. One function costs more, one costs
// less, one is new, one is gone, and one calls itself; the compiler may clone others.
#include <cstdio>
#include <cstdlib>

namespace ledger {

struct Entry {
	int amount, kind;
};

__attribute__((noinline)) static int total(const Entry *all, int n) {
	int sum = 0;
	for (int i = 0; i < n; i++)
#ifdef AFTER
		sum += all[i].kind == 2 ? all[i].amount : all[i].amount / 3; // more instructions
#else
		sum += all[i].amount;
#endif
	return sum;
}

__attribute__((noinline)) static int depth(int n) { return n <= 0 ? 0 : 1 + depth(n - 1) + (n & 1); }

#ifdef AFTER
__attribute__((noinline)) static int audit(const Entry *all, int n) {
	int bad = 0;
	for (int i = 0; i < n; i++)
		bad += all[i].amount < 0;
	return bad;
}
#else
__attribute__((noinline)) static int verify(const Entry *all, int n) {
	int bad = 0;
	for (int i = 1; i < n; i++)
		bad += all[i].amount < all[i - 1].amount && all[i].kind == all[i - 1].kind;
	return bad;
}
#endif

template <typename T> __attribute__((noinline)) T least(const T *all, int n, T start) {
	for (int i = 0; i < n; i++)
		if (all[i] < start)
			start = all[i];
	return start;
}

} // namespace ledger

int main() {
	ledger::Entry all[200];
	int amounts[200];
	for (int i = 0; i < 200; i++) {
		all[i] = {i * 37 % 101, i % 3};
		amounts[i] = all[i].amount;
	}
	int r = 0;
	for (int i = 0; i < 50; i++)
		r += ledger::total(all, 200);
#ifdef AFTER
	r += ledger::audit(all, 200) + ledger::depth(60);
#else
	r += ledger::verify(all, 200) + ledger::depth(80);
#endif
	r += ledger::least(amounts, 200, 1000);
	std::printf("%d\n", r & 1);
	return 0;
}
