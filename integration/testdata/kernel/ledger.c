// A module that makes the kernel report the error that a word chooses, which is written to
// /proc/ledger. Its functions are in three sections, which all begin at 0 in the file: .text,
// .init.text and .text.unlikely. A line with a mark is where a frame of that report must be.
#include <linux/bug.h>
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/uaccess.h>

struct account {
	struct account *next;
	long balance;
};

static struct account bank = {.balance = 7};
static struct task_struct *clerk;
static DEFINE_MUTEX(counter);

static __always_inline void ledger_post(struct account *a, long sum)
{
	a->balance += sum; // null
}

static __always_inline void ledger_move(struct account *a, long sum)
{
	ledger_post(a->next, sum); // null: inlined
}

static noinline void ledger_settle(struct account *a)
{
	ledger_move(a, 3); // null: called
	barrier();
}

static __always_inline void ledger_doubt(struct account *a)
{
	WARN_ON(a->balance == 7); // warn
}

static noinline void ledger_audit(struct account *a)
{
	ledger_doubt(a); // warn: called
	barrier();
}

static noinline void ledger_break(struct account *a)
{
	BUG_ON(a->balance == 7); // bug
	barrier();
}

static noinline __cold void ledger_complain(void)
{
	dump_stack(); // cold
	barrier();
}

static noinline void ledger_close(void)
{
	panic("the ledger is closed"); // the kernel prints no stack after an oops
}

static int ledger_wait(void *unused)
{
	mutex_lock(&counter); // hung
	mutex_unlock(&counter);
	while (!kthread_should_stop())
		msleep(100);
	return 0;
}

static ssize_t ledger_write(struct file *file, const char __user *text, size_t n, loff_t *at)
{
	char how[8] = "";

	if (copy_from_user(how, text, min(n, sizeof(how) - 1)))
		return -EFAULT;
	if (!strcmp(how, "null"))
		ledger_settle(&bank); // null: asked for
	if (!strcmp(how, "warn"))
		ledger_audit(&bank); // warn: asked for
	if (!strcmp(how, "bug"))
		ledger_break(&bank); // bug: asked for
	if (!strcmp(how, "panic"))
		ledger_close();
	if (!strcmp(how, "hung")) {
		mutex_lock(&counter);
		clerk = kthread_run(ledger_wait, NULL, "clerk");
	}
	return n;
}

static const struct proc_ops ledger_ops = {.proc_write = ledger_write};

static int __init ledger_init(void)
{
	ledger_complain(); // cold: called
	return proc_create("ledger", 0200, NULL, &ledger_ops) ? 0 : -ENOMEM;
}

module_init(ledger_init);
MODULE_LICENSE("GPL");
