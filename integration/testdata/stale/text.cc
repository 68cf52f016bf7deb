#include "shop.h"
#include <cctype>
#include <sstream>

namespace shop {

void fail(const std::string &what, int line) { throw Error{what, line}; }

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static std::string trimmed(const std::string &s) {
	size_t from = 0, to = s.size();
	while (from < to && blank(s[from]))
		from++;
	while (to > from && blank(s[to - 1]))
		to--;
	return s.substr(from, to - from);
}

#if VERSION >= 2
static std::string unquoted(const std::string &s) {
	if (s.size() < 2 || s.front() != '"' || s.back() != '"')
		return s;
	std::string out;
	for (size_t i = 1; i + 1 < s.size(); i++) {
		if (s[i] == '\\')
			i++;
		out += s[i];
	}
	return out;
}
#endif

std::vector<std::string> split(const std::string &line, char at) {
	std::vector<std::string> all;
	std::string word;
	for (char c : line) {
		if (c != at) {
			word += c;
			continue;
		}
#if VERSION >= 2
		all.push_back(unquoted(trimmed(word)));
#else
		all.push_back(trimmed(word));
#endif
		word.clear();
	}
	all.push_back(trimmed(word));
	return all;
}

std::string join(const std::vector<std::string> &all, const std::string &between) {
	std::ostringstream out;
	for (size_t i = 0; i < all.size(); i++)
		out << (i ? between : "") << all[i];
	return out.str();
}

std::string padded(std::string s, size_t width) {
	while (s.size() < width)
		s.insert(s.begin(), ' ');
	return s;
}

std::string number(long n) {
	if (n < 0)
		return "-" + number(-n);
	std::string s = std::to_string(n);
	for (int at = int(s.size()) - 3; at > 0; at -= 3)
		s.insert(at, ",");
	return s;
}

long toNumber(const std::string &s) {
	if (s.empty())
		fail("no number", __LINE__);
	long n = 0;
	for (char c : s) {
		if (c == ',')
			continue;
		if (!isdigit((unsigned char)c))
			fail("not a number: " + s, __LINE__);
		n = n * 10 + (c - '0');
	}
	return n;
}

Order parseOrder(const std::string &line) {
	std::vector<std::string> f = split(line, ';');
	if (f.size() < 4)
		fail("too few fields: " + number(long(f.size())), __LINE__);
	Order o;
	o.item = f[0];
	o.buyer = f[1];
	o.amount = toNumber(f[2]);
	o.price = toNumber(f[3]);
	for (size_t i = 4; i < f.size(); i++)
		o.tags.push_back(f[i]);
	return o;
}

__attribute__((noinline)) static int walkCell(int *cell, int n) { return fault(cell, n) + 1; }

__attribute__((noinline)) static int walkCells(int *cell, int n) { return walkCell(cell, n) * 2; }

int walkRows(int *cell, int n) { return walkCells(cell, n) + walkCells(cell + 1, n - 1); }

} // namespace shop
