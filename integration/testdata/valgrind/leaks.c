// A program with errors that occur several times, and leaks of all kinds.
#include <stdlib.h>

struct node { struct node *next; char rest[1200]; };

static int *reachable, *inside;

__attribute__((noinline)) static int beyond(int *numbers) { return numbers[10]; }

__attribute__((noinline)) static void lose(void)
{
	struct node *volatile first = malloc(sizeof *first);
	first->next = malloc(sizeof *first);
	first->next->next = NULL;
	first = NULL;
}

int main(void)
{
	int *volatile numbers = malloc(10 * sizeof *numbers);
	volatile int sum = 0;
	for (int i = 0; i < 3; i++)
		sum += beyond(numbers);
	free(numbers);
	sum += numbers[1];
	lose();
	lose();
	reachable = malloc(16);
	inside = malloc(64);
	inside += 3;
	numbers = NULL;
	return 0;
}
