// A stand-in for a kernel of AArch64: functions with inlined calls, which are not run.
struct account {
	struct account *next;
	long balance;
};

struct account bank;
void print(long);

static inline __attribute__((always_inline)) void ledger_post(struct account *a, long sum)
{
	a->balance += sum;
}

__attribute__((noinline)) void ledger_settle(struct account *a)
{
	ledger_post(a->next, 3);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) long ledger_init(struct account *a)
{
	ledger_settle(a);
	print(a->balance);
	ledger_settle(a->next);
	return a->balance;
}

__attribute__((noinline)) void print(long n)
{
	__asm__ volatile("" ::"r"(n));
}

__attribute__((noinline)) long start_kernel(void)
{
	print(ledger_init(&bank));
	return ledger_init(bank.next) + 1;
}
