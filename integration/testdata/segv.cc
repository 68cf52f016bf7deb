// A bad access inside a call of libc (qsort) into this program: frames of three modules.
#include <cstdlib>

namespace {

struct Node {
  int key;
  Node *next;
};

inline int key_of(const Node *n) { return n->next->key; }

int compare(const void *a, const void *b) {
  return key_of(*static_cast<Node *const *>(a)) - key_of(*static_cast<Node *const *>(b));
}

__attribute__((noinline)) int sort(Node **nodes, size_t count) {
  std::qsort(nodes, count, sizeof *nodes, compare);
  return nodes[0]->key;
}

}  // namespace

int main() {
  Node a{1, nullptr}, b{2, &a};
  Node *nodes[] = {&b, &a};
  return sort(nodes, 2);
}
