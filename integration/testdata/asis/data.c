// Variables for the cases in cases.txt.
struct pair { int a, b; };
int first = 1;
static int second = 2;
static struct pair pairs[8] = {{3, 4}};
const char text[] = "text";
static int empty[16];
_Thread_local int own = 5;
extern int alias_of_first __attribute__((alias("first")));
int sum(int n) {
  static int calls;
  return calls++ + first + second + pairs[n & 7].b + empty[n & 15] + text[n & 3] + own;
}
int main(int n, char **v) { return v ? sum(n) : n; }
