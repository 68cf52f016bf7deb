// A shop of five objects. With -DVERSION=2 each object has the changes of a later version: code is
// added within functions, functions are added, moved and removed.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#ifndef VERSION
#define VERSION 1
#endif

namespace shop {

struct Order {
	std::string item, buyer;
	long amount = 0, price = 0;
	std::vector<std::string> tags;
	long total() const { return amount * price; }
};

struct Error {
	std::string what;
	int line;
};

class Ledger {
public:
	void add(Order o);
	long balance(const std::string &buyer) const;
	std::vector<std::string> debtors(long limit) const;
	void settle(const std::string &buyer, long amount);
	size_t prune(const std::function<bool(const Order &)> &old);
	std::string report() const;

private:
	void check(const Order &o) const;
	std::map<std::string, std::vector<Order>> orders_;
	std::map<std::string, long> paid_;
};

class Node {
public:
	virtual ~Node() {}
	virtual long value(const std::map<std::string, long> &names) const = 0;
	virtual std::string text() const { return "?"; }
	virtual int depth() const { return 1; }
};

std::unique_ptr<Node> parse(const std::string &text);
Order parseOrder(const std::string &line);
std::vector<std::string> split(const std::string &line, char at);
std::string join(const std::vector<std::string> &all, const std::string &between);
std::string padded(std::string s, size_t width);
std::string number(long n);
long toNumber(const std::string &s);
[[noreturn]] void fail(const std::string &what, int line);

class Task {
public:
	virtual ~Task() {}
	virtual bool run(Ledger &l) = 0;
	virtual std::string name() const = 0;
};

class Queue {
public:
	void push(int priority, std::unique_ptr<Task> t);
	int drain(Ledger &l);
	void retry(std::unique_ptr<Task> t, int times);

private:
	struct Entry {
		int priority;
		std::unique_ptr<Task> task;
	};
	std::unique_ptr<Task> pop();
	void sift(size_t at);
	std::vector<Entry> heap_;
};

std::unique_ptr<Task> makeTask(const std::string &line);
long shortest(const std::vector<std::vector<long>> &roads, size_t from, size_t to);
std::vector<size_t> route(const std::vector<std::vector<long>> &roads);
unsigned checksum(const unsigned char *b, size_t n);
int *acquire(int n);
void release(int *cell);
int fault(int *cell, int n);
int walkRows(int *cell, int n); // calls walkCells, which calls walkCell, which calls fault

} // namespace shop
