// A program with errors in a library whose functions and variables Valgrind can name.
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <valgrind/memcheck.h>

#include "names.h"

#define NOINLINE __attribute__((noinline))

volatile int sink;

static void handler(int signal)
{
	char *p = static_cast<char *>(malloc(4));
	if (*p)
		sink = signal;
	free(p);
}

// interrupt is interrupted by its own signal, at one of six places.
NOINLINE static void interrupt(int place, int pid)
{
	long result;
#define KILL(n) \
	case n: \
		asm volatile("syscall" : "=a"(result) : "0"(SYS_kill), "D"(pid), "S"(SIGUSR1) : "rcx", "r11", "memory"); \
		sink = n; \
		break;
	switch (place) {
	KILL(0) KILL(1) KILL(2) KILL(3) KILL(4) KILL(5)
	}
}

int main(int argc, char **argv)
{
	names::handle(SIGUSR1, handler);
	int pid = getpid();
	for (int i = 0; i < 6; i++)
		interrupt(i, pid);

	(void)VALGRIND_MAKE_MEM_NOACCESS(names::start() + 16, 8);
	sink = names::leaf(names::start(), 19);

	int *numbers = static_cast<int *>(calloc(2, sizeof *numbers));
	sink = names::sum(numbers, numbers + 3);
	free(numbers);
	return 0;
}
