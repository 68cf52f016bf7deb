static __attribute__((noinline)) int inner(int n) {
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum ^= i * 7;
	return sum;
}

int plugin_run(int n) { return inner(n) + inner(3); }
