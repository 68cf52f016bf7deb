static __attribute__((noinline)) int twin(int x) {
	return x * x + 12345;
}
int second(int x) { return twin(x) + 2; }
