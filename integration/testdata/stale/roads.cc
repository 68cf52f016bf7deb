#include "shop.h"
#include <algorithm>
#include <limits>
#include <queue>

namespace shop {

static const long far = std::numeric_limits<long>::max();

typedef std::pair<long, size_t> Step;

static long relax(const std::vector<long> &row, long base, size_t at, std::vector<long> &best) {
	long improved = 0;
	for (size_t to = 0; to < row.size(); to++) {
		if (row[to] <= 0 || at == to)
			continue;
		long d = base + row[to];
		if (d < best[to]) {
			best[to] = d;
			improved++;
		}
	}
	return improved;
}

long shortest(const std::vector<std::vector<long>> &roads, size_t from, size_t to) {
	if (from >= roads.size() || to >= roads.size())
		fail("no such town: " + number(long(std::max(from, to))), __LINE__);
	std::vector<long> best(roads.size(), far);
	std::priority_queue<Step, std::vector<Step>, std::greater<Step>> open;
	best[from] = 0;
	open.push({0, from});
	while (!open.empty()) {
		Step s = open.top();
		open.pop();
		if (s.second == to)
			break;
#if VERSION >= 2
		if (s.first > best[s.second])
			continue;
#endif
		if (relax(roads[s.second], s.first, s.second, best))
			for (size_t i = 0; i < best.size(); i++)
				if (best[i] != far && i != s.second)
					open.push({best[i], i});
	}
	return best[to];
}

static long lengthOf(const std::vector<std::vector<long>> &roads, const std::vector<size_t> &towns) {
	long sum = 0;
	for (size_t i = 1; i < towns.size(); i++)
		sum += shortest(roads, towns[i - 1], towns[i]);
	return sum;
}

static bool improve(const std::vector<std::vector<long>> &roads, std::vector<size_t> &towns) {
	long now = lengthOf(roads, towns);
	for (size_t i = 1; i < towns.size(); i++)
		for (size_t j = i + 1; j < towns.size(); j++) {
			std::reverse(towns.begin() + long(i), towns.begin() + long(j));
			if (lengthOf(roads, towns) < now)
				return true;
			std::reverse(towns.begin() + long(i), towns.begin() + long(j));
		}
	return false;
}

std::vector<size_t> route(const std::vector<std::vector<long>> &roads) {
	std::vector<size_t> towns(roads.size());
	for (size_t i = 0; i < towns.size(); i++)
		towns[i] = i;
#if VERSION >= 2
	for (int n = 0; n < 100 && improve(roads, towns); n++)
		continue;
#else
	while (improve(roads, towns))
		continue;
#endif
	return towns;
}

unsigned checksum(const unsigned char *b, size_t n) {
	unsigned a = 1, c = 0;
	for (size_t i = 0; i < n; i++) {
		a = (a + b[i]) % 65521;
		c = (c + a) % 65521;
	}
	return c << 16 | a;
}

int *acquire(int n) {
	int *cell = new int[n];
	cell[0] = n;
	return cell;
}

void release(int *cell) {
	if (cell[0] > 0)
		delete[] cell;
}

int fault(int *cell, int n) {
	int sum = 0;
	for (int i = 0; i <= n; i++)
		sum += cell[i];
	return sum;
}

} // namespace shop
