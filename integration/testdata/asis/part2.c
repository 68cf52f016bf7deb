// A second function with the name both.
static __attribute__((noinline)) int both(int n) { return n * 5; }
extern int (*of_part)(int);
int spare(int n) { return n + 3; }
int main(int n, char **v) { return both(n) + of_part(v != 0); }
