#include "shop.h"
#include <algorithm>
#include <numeric>

namespace shop {

static long sumOf(const std::vector<Order> &all) {
	return std::accumulate(all.begin(), all.end(), 0L, [](long n, const Order &o) { return n + o.total(); });
}

void Ledger::check(const Order &o) const {
	if (o.amount <= 0)
		fail("amount " + number(o.amount), __LINE__);
	if (o.buyer.empty())
		fail("no buyer of " + o.item, __LINE__);
#if VERSION >= 2
	if (o.price > 1000000 && std::find(o.tags.begin(), o.tags.end(), "approved") == o.tags.end())
		fail("not approved: " + o.item + " for " + number(o.price), __LINE__);
#endif
}

void Ledger::add(Order o) {
	check(o);
	orders_[o.buyer].push_back(std::move(o));
}

long Ledger::balance(const std::string &buyer) const {
	auto all = orders_.find(buyer);
	if (all == orders_.end())
		return 0;
	auto paid = paid_.find(buyer);
	return sumOf(all->second) - (paid == paid_.end() ? 0 : paid->second);
}

std::vector<std::string> Ledger::debtors(long limit) const {
	std::vector<std::string> names;
	for (auto &of : orders_)
		if (balance(of.first) > limit)
			names.push_back(of.first);
	std::sort(names.begin(), names.end(), [this](const std::string &a, const std::string &b) { return balance(a) > balance(b); });
	return names;
}

#if VERSION >= 2
static size_t countTagged(const std::vector<Order> &all, const std::string &tag) {
	return std::count_if(all.begin(), all.end(), [&](const Order &o) { return std::find(o.tags.begin(), o.tags.end(), tag) != o.tags.end(); });
}
#endif

void Ledger::settle(const std::string &buyer, long amount) {
	if (amount > balance(buyer))
		fail("overpaid: " + number(amount), __LINE__);
	paid_[buyer] += amount;
}

size_t Ledger::prune(const std::function<bool(const Order &)> &old) {
	size_t n = 0;
	for (auto &of : orders_) {
		auto &all = of.second;
		auto end = std::remove_if(all.begin(), all.end(), old);
		n += size_t(all.end() - end);
		all.erase(end, all.end());
	}
	return n;
}

std::string Ledger::report() const {
	std::vector<std::string> lines;
	for (auto &name : debtors(0)) {
		lines.push_back(padded(name, 20) + padded(number(balance(name)), 14));
#if VERSION >= 2
		if (size_t n = countTagged(orders_.at(name), "late"))
			lines.back() += " late: " + number(long(n));
#endif
	}
	return join(lines, "\n");
}

} // namespace shop
