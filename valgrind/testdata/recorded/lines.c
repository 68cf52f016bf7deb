// A program with errors in a library whose functions Valgrind knows from debug information.
#include <stdlib.h>

#include "lines.h"

volatile int sink;

int main(void)
{
	char *p = malloc(4);
	const struct operations *all = operations();
	sink = all->read(p);
	sink = all->inlined(p);
	sink = all->again(2, p);
	free(p);
	return 0;
}
