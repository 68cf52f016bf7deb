#include "shop.h"
#include <algorithm>

namespace shop {

namespace {

class Sell : public Task {
public:
	explicit Sell(Order o) : o_(std::move(o)) {}
	bool run(Ledger &l) override {
		l.add(o_);
		return true;
	}
	std::string name() const override { return "sell " + o_.item; }

private:
	Order o_;
};

class Pay : public Task {
public:
	Pay(std::string buyer, std::string sum) : buyer_(std::move(buyer)), sum_(std::move(sum)) {}
	bool run(Ledger &l) override {
		std::map<std::string, long> names{{"all", l.balance(buyer_)}, {"half", l.balance(buyer_) / 2}};
		l.settle(buyer_, parse(sum_)->value(names));
		return l.balance(buyer_) == 0;
	}
	std::string name() const override { return "pay " + buyer_ + " " + parse(sum_)->text(); }

private:
	std::string buyer_, sum_;
};

class Prune : public Task {
public:
	explicit Prune(long least) : least_(least) {}
	bool run(Ledger &l) override {
		return l.prune([this](const Order &o) { return o.total() < least_; }) > 0;
	}
	std::string name() const override { return "prune below " + number(least_); }

private:
	long least_;
};

#if VERSION >= 2
class Print : public Task {
public:
	bool run(Ledger &l) override { return !l.report().empty(); }
	std::string name() const override { return "print"; }
};
#endif

} // namespace

std::unique_ptr<Task> makeTask(const std::string &line) {
	std::vector<std::string> f = split(line, ' ');
	if (f[0] == "pay" && f.size() > 2)
		return std::make_unique<Pay>(f[1], f[2]);
	if (f[0] == "prune")
		return std::make_unique<Prune>(toNumber(f.at(1)));
#if VERSION >= 2
	if (f[0] == "print")
		return std::make_unique<Print>();
#endif
	return std::make_unique<Sell>(parseOrder(line));
}

void Queue::sift(size_t at) {
	while (at > 0 && heap_[(at - 1) / 2].priority < heap_[at].priority) {
		std::swap(heap_[(at - 1) / 2], heap_[at]);
		at = (at - 1) / 2;
	}
}

void Queue::push(int priority, std::unique_ptr<Task> t) {
	if (!t)
		fail("no task", __LINE__);
#if VERSION >= 2
	priority = std::clamp(priority, -9, 9);
#endif
	heap_.push_back(Entry{priority, std::move(t)});
	sift(heap_.size() - 1);
}

std::unique_ptr<Task> Queue::pop() {
	auto most = std::max_element(heap_.begin(), heap_.end(), [](const Entry &a, const Entry &b) { return a.priority < b.priority; });
	std::unique_ptr<Task> t = std::move(most->task);
	heap_.erase(most);
	return t;
}

void Queue::retry(std::unique_ptr<Task> t, int times) {
	if (times > 3)
		fail("given up: " + t->name(), __LINE__);
	push(-times, std::move(t));
}

int Queue::drain(Ledger &l) {
	int n = 0;
	while (!heap_.empty()) {
		std::unique_ptr<Task> t = pop();
		try {
			n += t->run(l);
		} catch (const Error &e) {
			retry(std::move(t), e.line % 5);
		}
	}
	return n;
}

} // namespace shop
