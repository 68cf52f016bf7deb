// Makes the kernel report errors of each kind that its configuration finds, one after the other, and
// then panics. It is built into the kernel, or is a module. A line with a mark, "// REPORT", is where
// a frame of that report must be.
#include <linux/bug.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/hardirq.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/panic.h>
#include <linux/rcupdate.h>
#include <linux/sched/debug.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/sysrq.h>
#include <linux/timer.h>

struct account {
	struct account *next;
	long balance;
	int digits[4];
};

static struct account bank = {.balance = 7};
static struct account vault = {.balance = 7};
static struct account __rcu *owner;
static DEFINE_MUTEX(counter);
static DEFINE_MUTEX(safe);
static DEFINE_SPINLOCK(door);
static DECLARE_COMPLETION(done);

static __always_inline void teller_doubt(struct account *a)
{
	WARN_ON(a->balance == 7); // warn
}

static noinline void teller_audit(struct account *a)
{
	teller_doubt(a); // warn: called
	barrier();
}

static void bank_warn(void)
{
	teller_audit(&vault); // warn: asked for
	barrier();
}

static __always_inline void teller_refuse(struct account *a)
{
	BUG_ON(a->balance == 7); // bug
}

static noinline void bank_bug(void)
{
	teller_refuse(&vault); // bug: called
	barrier();
}

static __always_inline void teller_post(struct account *a, long sum)
{
	a->balance += sum; // null
}

static __always_inline void teller_move(struct account *a, long sum)
{
	teller_post(a->next, sum); // null: inlined
}

static noinline void teller_settle(struct account *a)
{
	teller_move(a, 3); // null: called
	barrier();
}

static void bank_null(void)
{
	teller_settle(&bank); // null: asked for
	barrier();
}

static noinline void teller_print(void)
{
	dump_stack(); // stack
	barrier();
}

static void teller_alarm(struct timer_list *t)
{
	teller_print(); // irq
	barrier();
	complete(&done);
}

static void bank_irq(void) // a stack in an interrupt
{
	static struct timer_list bell;
	unsigned long end = jiffies + HZ;

	timer_setup(&bell, teller_alarm, 0);
	mod_timer(&bell, jiffies + 2);
	while (time_before(jiffies, end))
		cpu_relax(); // or the line before, in an interrupt
	del_timer_sync(&bell);
}

static void bank_stack(void)
{
	teller_print(); // stack: called
	barrier();
}

static void bank_sysrq(void)
{
	handle_sysrq('l');
	handle_sysrq('p');
	handle_sysrq('t');
}

static __always_inline void teller_rest(void)
{
	might_sleep(); // sleep
}

static noinline void bank_sleep(void)
{
	spin_lock(&door);
	teller_rest(); // sleep: called
	spin_unlock(&door);
}

static noinline void bank_sched(void)
{
	preempt_disable();
	schedule_timeout_uninterruptible(1); // sched
	barrier(); // the report has enabled preemption
}

static __always_inline long teller_owner(void)
{
	struct account *a = rcu_dereference(owner); // rcu
	return a ? a->balance : 0;
}

static noinline void bank_rcu(void)
{
	bank.balance += teller_owner(); // rcu: called
	barrier();
}

static int teller_wait(void *unused)
{
	mutex_lock(&counter); // hung
	mutex_unlock(&counter);
	return 0;
}

static noinline void bank_hung(void)
{
	mutex_lock(&counter);
	kthread_run(teller_wait, NULL, "clerk");
	msleep(7000);
	handle_sysrq('w');
	handle_sysrq('d');
	mutex_unlock(&counter);
}

static noinline void teller_count(unsigned long end)
{
	while (time_before(jiffies, end))
		cpu_relax(); // or the line before
}

static int teller_sync(void *unused)
{
	synchronize_rcu(); // which the stall holds up
	return 0;
}

static noinline void bank_stall(void)
{
	kthread_run(teller_sync, NULL, "waiter");
	preempt_disable();
	teller_count(jiffies + 9 * HZ); // stall: called
	preempt_enable();
}

static noinline void teller_open(struct mutex *first, struct mutex *second)
{
	mutex_lock(first); // lock: first
	mutex_lock(second); // lock: second
	mutex_unlock(second);
	mutex_unlock(first);
}

static void bank_lock(void)
{
	teller_open(&counter, &safe); // lock: the right order
	barrier();
	teller_open(&safe, &counter); // lock: the wrong order
	barrier();
}

static DEFINE_SPINLOCK(gate);

static noinline void teller_gate(void)
{
	spin_lock(&gate); // gate
	spin_unlock(&gate);
}

static void teller_guard(struct timer_list *t)
{
	teller_gate(); // gate: in an interrupt
	barrier();
}

static noinline void teller_idle(unsigned long end)
{
	while (time_before(jiffies, end))
		cpu_relax(); // or the line before
}

static void bank_gate(void) // lockdep reports an error once, so it is this one or bank_lock
{
	static struct timer_list bell;

	timer_setup(&bell, teller_guard, 0);
	mod_timer(&bell, jiffies + 2);
	teller_idle(jiffies + HZ); // gate: called
	teller_gate(); // gate: outside of interrupts
	barrier();
}

static __always_inline void teller_digit(struct account *a, long n)
{
	((volatile char *)a)[n] = 1; // overflow
}

static __always_inline struct account *teller_new(void)
{
	return kzalloc(sizeof(struct account), GFP_KERNEL); // overflow: allocated
}

static noinline void bank_overflow(void)
{
	struct account *a = teller_new(); // overflow: allocated for

	OPTIMIZER_HIDE_VAR(a);
	teller_digit(a, sizeof(*a) + 1); // overflow: called
	kfree(a);
}

static __always_inline void teller_close(struct account *a)
{
	kfree(a); // stale: freed
}

static noinline void bank_stale(void)
{
	struct account *a = teller_new(), *b = a; // stale: allocated

	OPTIMIZER_HIDE_VAR(b);
	teller_close(a); // stale: freed by
	bank.balance += READ_ONCE(b->balance); // stale
}

static noinline void bank_spill(void)
{
	struct account a = {};
	long n = sizeof(a) + 4;

	OPTIMIZER_HIDE_VAR(n);
	teller_digit(&a, n); // spill
}

static noinline void bank_shift(void)
{
	int n = 40, one = 1;

	OPTIMIZER_HIDE_VAR(n);
	OPTIMIZER_HIDE_VAR(one);
	WRITE_ONCE(bank.digits[0], one << n); // shift
}

static noinline void bank_digits(void)
{
	int n = 5;

	OPTIMIZER_HIDE_VAR(n);
	WRITE_ONCE(bank.digits[n], 1); // digits
}

static noinline void bank_list(void)
{
	LIST_HEAD(head);
	struct list_head item = {}, other = {};

	head.next = &other;
	list_add(&item, &head); // list
}

static noinline void teller_race(struct account *a)
{
	a->balance++; // race
	barrier();
}

static int teller_run(void *unused)
{
	unsigned long end = jiffies + 4 * HZ;

	while (time_before(jiffies, end))
		teller_race(&bank); // race: called
	return 0;
}

static void bank_race(void)
{
	kthread_run(teller_run, NULL, "rival");
	teller_run(NULL);
}

static noinline void bank_panic(void)
{
	panic("the bank is closed");
}

static const struct report {
	const char *name;
	void (*make)(void);
	int seconds; // until the next report, at most
	bool off; // this kernel does not find the error
} reports[] = {
	{"race", bank_race, 9, !IS_ENABLED(CONFIG_KCSAN)},
	{"sleep", bank_sleep, 9},
	{"rcu", bank_rcu, 9},
	{"hung", bank_hung, 30},
	{"stall", bank_stall, 30},
	{"irq", bank_irq, 5},
	{"stack", bank_stack, 9},
	{"sysrq", bank_sysrq, 9},
	{"warn", bank_warn, 9},
	{"gate", bank_gate, 9, !IS_ENABLED(CONFIG_X86)},
	{"lock", bank_lock, 9},
	{"shift", bank_shift, 9, !IS_ENABLED(CONFIG_UBSAN)},
	{"digits", bank_digits, 9, !IS_ENABLED(CONFIG_UBSAN)},
	{"overflow", bank_overflow, 9, !IS_ENABLED(CONFIG_KASAN)},
	{"stale", bank_stale, 9, !IS_ENABLED(CONFIG_KASAN)},
	{"spill", bank_spill, 9, !IS_ENABLED(CONFIG_KASAN)},
	{"sched", bank_sched, 9},
	{"list", bank_list, 2},
	{"bug", bank_bug, 2},
	{"null", bank_null, 2},
	{"panic", bank_panic, 9},
};

static int bank_thread(void *made) // which some of the reports kill
{
	const struct report *r = made;

	r->make();
	complete(&done);
	return 0;
}

static int __init reports_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(reports); i++) {
		if (reports[i].off)
			continue;
		pr_info("the report is: %s\n", reports[i].name);
		reinit_completion(&done);
		kthread_run(bank_thread, (void *)&reports[i], "teller/%s", reports[i].name);
		wait_for_completion_interruptible_timeout(&done, reports[i].seconds * HZ);
		msleep(200);
	}
	return 0;
}

late_initcall(reports_init);
MODULE_LICENSE("GPL");
