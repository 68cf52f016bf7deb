// A signal handler that Memcheck complains of, in C and in C++.
#include <signal.h>
#include <stdlib.h>

volatile int sink;

static void handler(int signal)
{
	char *p = (char *)malloc(4);
	if (*p)
		sink = signal;
	free(p);
}

int main(void)
{
	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	return 0;
}
