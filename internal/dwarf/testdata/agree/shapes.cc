// Inlining at many depths, lambdas, local classes, cold paths, and functions that several units share and the linker keeps once.
#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "shapes.h"

namespace {

template <int N> struct Tag {
  int v = N;
  bool operator<(const Tag &o) const { return v < o.v; }
};

template <class T> struct Tree {
  struct Node { T key; Node *left = nullptr, *right = nullptr; };
  Node *root = nullptr;
  bool insert(const T &key) {
    Node **at = &root;
    while (*at) {
      if (key < (*at)->key) at = &(*at)->left;
      else if ((*at)->key < key) at = &(*at)->right;
      else return false;
    }
    *at = new Node{key};
    return true;
  }
  template <class F> void each(F f) const { walk(root, f); }
  ~Tree() { drop(root); }
private:
  template <class F> static void walk(Node *n, F &f) {
    if (!n) return;
    walk(n->left, f);
    f(n->key);
    walk(n->right, f);
  }
  static void drop(Node *n) {
    if (!n) return;
    drop(n->left);
    drop(n->right);
    delete n;
  }
};

template <class K> int churn(int n) {
  std::map<K, std::string> m;
  Tree<int> t;
  std::vector<std::pair<int, K>> v;
  for (int i = 0; i < n; ++i) {
    v.push_back({i * 7 % 5, K{}});
    m[K{}] += std::to_string(i);
    t.insert(i * UNIT % 17);
  }
  std::sort(v.begin(), v.end(), [](auto &a, auto &b) { return a.first > b.first; });
  int sum = 0;
  t.each([&](int k) {
    struct Twice { // its member's code lies below the lambda's
      int of(int x) const { return x > 1000 ? throw std::out_of_range("twice") : 2 * x; }
    };
    sum += Twice().of(k);
  });
  return sum + int(v.size() + m.size());
}

template <int I> int many(int n) {
  int r = churn<Tag<I * 31 + UNIT>>(n);
  if constexpr (I > 0) r += many<I - 1>(n);
  return r;
}

int unused(int n) { return churn<Tag<99>>(n); }

} // namespace

struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
};
struct Square : Shape {
  double side;
  explicit Square(double s) : side(s) {}
  double area() const override { return square(side); }
};

int CAT(dropped_, UNIT)(int n) { return unused(n); } // by --gc-sections

int CAT(unit_, UNIT)(int n) {
  if (n < 0) throw std::invalid_argument("negative: " + std::to_string(n));
  std::vector<Square> s;
  for (int i = 0; i < n; ++i) s.emplace_back(i);
  double a = std::accumulate(s.begin(), s.end(), 0.0, [](double x, const Square &q) { return x + q.area(); });
  return many<2>(n % 5 + 3) + int(a) + plain(n);
}
