int area(int n);
int perimeter(int n, int (*callback)(int));

static inline int in_header(int n) {
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += i * n;
	return sum;
}
