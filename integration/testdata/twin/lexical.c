// Calls that are inlined inside of lexical blocks, and static functions of one name in each block.
volatile int sink;

static inline int twice(int n)
{
	sink += n;
	return 2 * n;
}

static inline int deep(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		int half = i / 2;
		{
			int odd = twice(half);
			{
				int rest = twice(odd + i);
				sum += rest ^ odd;
			}
			sum += odd;
		}
	}
	return sum;
}

int outer(int n)
{
	int all = deep(n);
	if (n > 3) {
		int more = deep(n - 3);
		while (more-- > 0) {
			int part = twice(more);
			all += part;
		}
	} else {
		int less = twice(n);
		all -= less;
	}
	return all;
}
