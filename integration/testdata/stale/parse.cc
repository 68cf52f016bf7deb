#include "shop.h"

namespace shop {

namespace {

struct Number : Node {
	long n;
	explicit Number(long n) : n(n) {}
	long value(const std::map<std::string, long> &) const override { return n; }
	std::string text() const override { return number(n); }
};

struct Name : Node {
	std::string name;
	explicit Name(std::string name) : name(std::move(name)) {}
	long value(const std::map<std::string, long> &names) const override {
		auto it = names.find(name);
		if (it == names.end())
			fail("unknown: " + name, __LINE__);
		return it->second;
	}
	std::string text() const override { return name; }
};

struct Binary : Node {
	char op;
	std::unique_ptr<Node> a, b;
	Binary(char op, std::unique_ptr<Node> a, std::unique_ptr<Node> b) : op(op), a(std::move(a)), b(std::move(b)) {}
	long value(const std::map<std::string, long> &names) const override {
		long x = a->value(names), y = b->value(names);
		switch (op) {
		case '+':
			return x + y;
		case '-':
			return x - y;
		case '*':
			return x * y;
#if VERSION >= 2
		case '%':
			if (y == 0)
				fail("modulo zero", __LINE__);
			return x % y;
#endif
		}
		if (y == 0)
			fail("divided by zero: " + text(), __LINE__);
		return x / y;
	}
	std::string text() const override { return "(" + a->text() + op + b->text() + ")"; }
	int depth() const override { return 1 + std::max(a->depth(), b->depth()); }
};

class Parser {
public:
	explicit Parser(const std::string &s) : s_(s) {}
	std::unique_ptr<Node> whole() {
		auto n = sum();
		if (at_ != s_.size())
			fail("rest: " + s_.substr(at_), __LINE__);
		return n;
	}

private:
	char next() const { return at_ < s_.size() ? s_[at_] : 0; }
	std::unique_ptr<Node> sum() {
		auto n = product();
		while (next() == '+' || next() == '-') {
			char op = s_[at_++];
			n = std::make_unique<Binary>(op, std::move(n), product());
		}
		return n;
	}
	std::unique_ptr<Node> product() {
		auto n = factor();
		while (next() == '*' || next() == '/' || (VERSION >= 2 && next() == '%')) {
			char op = s_[at_++];
			n = std::make_unique<Binary>(op, std::move(n), factor());
		}
		return n;
	}
	std::unique_ptr<Node> factor() {
		if (next() == '(') {
			at_++;
			auto n = sum();
			if (next() != ')')
				fail("no )", __LINE__);
			at_++;
			return n;
		}
		size_t from = at_;
		while (isalnum((unsigned char)next()))
			at_++;
		if (from == at_)
			fail("no operand", __LINE__);
		std::string word = s_.substr(from, at_ - from);
		if (isdigit((unsigned char)word[0]))
			return std::make_unique<Number>(toNumber(word));
		return std::make_unique<Name>(word);
	}
	std::string s_;
	size_t at_ = 0;
};

} // namespace

std::unique_ptr<Node> parse(const std::string &text) {
#if VERSION >= 2
	std::string dense;
	for (char c : text)
		if (c != ' ')
			dense += c;
	return Parser(dense).whole();
#else
	return Parser(text).whole();
#endif
}

} // namespace shop
