// Variables of every shape that C++ has.
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace ns {

struct Empty {};

struct Base {
	int a;
	char b;
	virtual ~Base() {}
};

struct Tail : Base { // c may lie in what is padding of Base
	char c;
};

struct Two : Empty, Tail {
	long d;
	static int shared[3];
	enum Kind { None, Some } kind;
};

struct Virtual : virtual Base {
	int own;
};

class Node {
	int key = 1;
	struct Link { Node *prev, *next; } link = {};
	[[no_unique_address]] Empty nothing;
	short tail[2] = {};

public:
	static Node first;
	int use() { return key + tail[0] + (link.next != nullptr); }
};

Node Node::first;
int Two::shared[3] = {1, 2, 3};
Two two[2];
Virtual virt;
int &reference = two[0].a;
int Two::*pointer = &Two::a;
std::string text = "some text that is too long for its small buffer";
std::vector<int> list;
std::array<std::array<Tail, 3>, 2> grid;
std::tuple<char, int, std::pair<long, short>> tuple;
std::map<int, std::unique_ptr<Node>> nodes;
static Node local;
template <typename T> struct Holder { T value; T many[2]; };
Holder<Holder<uint16_t>> holder;
template <typename T> T per_type[3];
inline Node inlined;
thread_local int mine;

inline Holder<int> &in_function()
{
	static Holder<int> held;
	return held;
}

namespace {
Two anonymous[3];
}

} // namespace ns

int main()
{
	struct Inner { char a; int b[2]; };
	static Inner inner[2];
	inner[0].b[1] = 3;
	return ns::in_function().value + ns::local.use() + ns::anonymous[1].kind + ns::per_type<long>[1] + ns::inlined.use() + ns::mine + inner[0].b[0];
}
