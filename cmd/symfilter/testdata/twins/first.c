static __attribute__((noinline)) int twin(int x) {
	return x * 3;
}
int first(int x) { return twin(x) + 1; }
