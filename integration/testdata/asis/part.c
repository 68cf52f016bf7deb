// Its name of a function is also in calls.cc or lines.s, for searches by name.
static __attribute__((noinline)) int label(int n) { return n + 2; }
static int both(int n) { return label(n) * 2; }
int (*of_part)(int) = both;
