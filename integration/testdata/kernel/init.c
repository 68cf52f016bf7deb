// The init process of a machine that makes its kernel report errors: it loads ledger.ko, gives it each
// of the words, and asks for the stacks of tasks. The last word is "panic", which ends the machine.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	if (fd >= 0) {
		if (write(fd, text, strlen(text)) < 0)
			perror(path);
		close(fd);
	}
}

static void show(const char *path) // /proc/PID/stack
{
	char b[4096];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, b, sizeof b);
	if (n > 0)
		fwrite(b, 1, n, stdout);
	fflush(stdout);
}

int main(void)
{
	static const char *words[] = {"warn", "bug", "null", "hung", "panic"};
	mkdir("/proc", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	put("/proc/sys/kernel/hung_task_timeout_secs", "1");
	put("/proc/sys/kernel/printk", "8");
	if (syscall(SYS_finit_module, open("/ledger.ko", O_RDONLY), "", 0) != 0)
		perror("ledger.ko");
	for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
		pid_t pid = fork();
		if (pid == 0) { // which an oops kills
			put("/proc/ledger", words[i]);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		if (!strcmp(words[i], "hung")) {
			sleep(4);
			put("/proc/sysrq-trigger", "w");
			put("/proc/sysrq-trigger", "l");
			show("/proc/self/stack");
			sleep(1);
		}
	}
	return 0;
}
