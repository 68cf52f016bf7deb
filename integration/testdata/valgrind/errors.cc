// Five errors for Memcheck, one of them in an inlined template; each is made once.
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

namespace app {

template <class T> static inline __attribute__((always_inline)) T peek(const T *p, int i) { return p[i]; }

struct Box {
	std::vector<int> values;
	__attribute__((noinline)) int invalid(int n);
	__attribute__((noinline)) ~Box();
};

int Box::invalid(int n)
{
	int *p = static_cast<int *>(malloc(n));
	int r = peek<int>(p, n);
	free(p);
	return r;
}

Box::~Box()
{
	volatile int *p = new int[3];
	delete[] p;
	if (p[1] == 3)
		puts("three");
}

static __attribute__((noinline)) void leak(int n)
{
	volatile char *p = static_cast<char *>(malloc(n));
	*p = 1;
}

} // namespace app

__attribute__((noinline)) static int uninitialised(int n)
{
	int *p = static_cast<int *>(malloc(sizeof *p * 4));
	if (p[n])
		puts("set");
	free(p);
	return n;
}

__attribute__((noinline)) static void syscall_parameter()
{
	char *p = static_cast<char *>(malloc(8));
	int null = open("/dev/null", O_WRONLY);
	if (write(null, p, 8) != 8)
		puts("not written");
	close(null);
	free(p);
}

int main(int argc, char **)
{
	app::Box box;
	int r = box.invalid(argc * 8);
	app::leak(argc * 30);
	r += uninitialised(argc);
	syscall_parameter();
	fflush(stdout);
	return r == 12345;
}
