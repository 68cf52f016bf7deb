// What Memcheck complains of: each argument's letter is something to do.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <valgrind/valgrind.h>

#define NOINLINE __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))

char global[16];
static int table[4][2];
volatile int sink;

INLINE int innermost(const char *p, int i) { return p[i]; }
INLINE int middle(const char *p)
{
	return innermost(p, 12) + 1;
}

NOINLINE int invalid_read(int n)
{
	char *p = malloc(8 + n);
	int r = middle(p);
	free(p);
	return r;
}

NOINLINE int recursion(int n, const char *p)
{
	if (n == 0)
		return p[20];
	int r = recursion(n - 1, p) + 1;
	return r + global[n & 7];
}

NOINLINE void leak(int n)
{
	char **p = malloc(sizeof *p);
	*p = malloc(100 * n);
	sink = (*p)[0] = n;
}

NOINLINE int uninitialised(int n)
{
	int a[4];
	a[n & 1] = 1;
	if (((volatile int *)a)[2] == 3)
		return 1;
	return table[n & 3][1];
}

NOINLINE int by_pointer(int (*f)(int), int n) { return f(n) + 1; }

NOINLINE void handler(int s)
{
	char *p = malloc(3);
	sink = p[3] + s;
	free(p);
}

NOINLINE int freed_twice(void)
{
	char *volatile p = malloc(10);
	free(p);
	sink = p[1];
	free(p);
	return sink;
}

static void *thread(void *arg)
{
	pthread_setname_np(pthread_self(), "wo<rk&er");
	sink = by_pointer(invalid_read, *(int *)arg);
	return arg;
}

static void plugin(const char *path)
{
	for (int i = 0; i < 2; i++) {
		void *lib = dlopen(path, RTLD_NOW);
		if (!lib) {
			fprintf(stderr, "%s\n", dlerror());
			exit(2);
		}
		int (*f)(int) = (int (*)(int))dlsym(lib, "plugged");
		sink = f(i);
		if (i == 0)
			dlclose(lib);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = strlen(what) & 1;
	for (; *what; what++)
		switch (*what) {
		case 'r':
			sink = invalid_read(n);
			break;
		case 'R': {
			char *p = malloc(10);
			sink = recursion(4, p);
			free(p);
			break;
		}
		case 'l':
			leak(n + 1);
			break;
		case 'u':
			sink = uninitialised(n);
			break;
		case 'p':
			sink = by_pointer(invalid_read, n);
			break;
		case 's':
			signal(SIGUSR1, handler);
			raise(SIGUSR1);
			break;
		case 'd':
			sink = freed_twice();
			break;
		case 'm':
			VALGRIND_PRINTF("{{{reset}}} {{{module:0:x:elf:aa}}} \033[31m</text><error> &\n");
			VALGRIND_PRINTF_BACKTRACE("here\n");
			break;
		case 't': {
			pthread_t t;
			pthread_create(&t, NULL, thread, &n);
			pthread_join(t, NULL);
			break;
		}
		case 'f':
			if (fork() == 0) {
				sink = freed_twice();
				_exit(0);
			}
			wait(NULL);
			break;
		case 'D':
			plugin(argv[2]);
			break;
		case 'e':
			execl(argv[0], argv[0], "rRu", (char *)NULL);
			break;
		case 'k':
			*(volatile int *)8 = 1;
		}
	return 0;
}
