/* The seeds of FuzzOpen: one function, one object, one local function. build.sh says how. */
int counter = 7;

static __attribute__((noinline)) int twice(int n)
{
	return 2 * n;
}

int run(int n)
{
	counter += twice(n);
	return counter;
}
