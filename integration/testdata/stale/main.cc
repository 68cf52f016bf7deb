#include "shop.h"
#include <cstdio>
#include <iostream>

using namespace shop;

static std::vector<std::vector<long>> grid(size_t n) {
	std::vector<std::vector<long>> all(n, std::vector<long>(n));
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			all[i][j] = long((i * 7 + j * 13) % 17);
	return all;
}

static void show(const std::vector<size_t> &towns) {
	std::vector<std::string> names;
	for (size_t t : towns)
		names.push_back(number(long(t)));
	std::cout << join(names, " > ") << "\n";
}

static int work(std::istream &in) {
	Ledger l;
	Queue q;
	std::string line;
	for (int n = 0; std::getline(in, line); n++) {
		try {
			q.push(n % 3, makeTask(line));
		} catch (const Error &e) {
			std::cerr << e.line << ": " << e.what << "\n";
		}
#if VERSION >= 2
		if (n % 100 == 99)
			std::cout << q.drain(l) << " done\n";
#endif
	}
	int done = q.drain(l);
	std::string report = l.report();
	std::cout << report << "\n" << done << " " << checksum((const unsigned char *)report.data(), report.size()) << "\n";
	return done;
}

int main(int argc, char **argv) {
	show(route(grid(6)));
	if (argc > 1) {
		int *cell = acquire(argc + 1);
		release(cell);
		printf("%d\n", walkRows(cell, argc));
	}
	return work(std::cin) < 0;
}
