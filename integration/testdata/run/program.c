// A program that does what its arguments say, one after the other. Stacks are printed as addresses
// alone, in the form of Rust's panics.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PLUGIN

void print_stack(int fd) {
	void *stack[32];
	int n = backtrace(stack, 32);
	dprintf(fd, "stack backtrace:\n");
	for (int i = 0; i < n; i++)
		dprintf(fd, "%4d: %18p - <unknown>\n", i, stack[i]);
}

// hold keeps the process until its standard input has ended or has a byte.
static void hold(void) {
	char byte;
	if (read(0, &byte, 1) < 0)
		_exit(1);
}

__attribute__((noinline)) void settle(int fd) {
	print_stack(fd);
	__asm__ volatile("" ::: "memory");
}

static void on_signal(int number) {
	dprintf(1, "got signal %d\n", number);
}

static void on_resize(int number) {
	struct winsize size = {0};
	ioctl(1, TIOCGWINSZ, &size);
	dprintf(1, "now %d columns\n", size.ws_col);
	if (size.ws_col == 66)
		_exit(0);
}

static void on_abort(int number) {
	settle(2);
	hold();
	signal(number, SIG_DFL);
	raise(number);
}

__attribute__((noinline)) static void act(char **args) {
	for (; *args; args++) {
		const char *word = *args;
		if (!strcmp(word, "stack")) {
			settle(1);
			hold();
		} else if (!strcmp(word, "abort")) {
			signal(SIGABRT, on_abort);
			abort();
		} else if (!strcmp(word, "child")) {
			if (fork() == 0) {
				execv("/proc/self/exe", (char *[]){"again", "stack", NULL});
				_exit(1);
			}
			wait(NULL);
		} else if (!strcmp(word, "plugin")) {
			void *library = dlopen(*++args, RTLD_NOW);
			void (*enter)(void (*)(int)) = library ? dlsym(library, "enter") : NULL;
			if (enter)
				enter(settle);
			else
				printf("%s\n", dlerror());
			hold();
		} else if (!strcmp(word, "stay")) {
			if (fork() == 0)
				for (;;)
					pause();
		} else if (!strcmp(word, "flood")) {
			for (int i = 0; i < 200000; i++)
				printf("line %d of the flood\n", i);
			fflush(stdout);
		} else if (!strcmp(word, "children")) {
			for (int i = 0; i < 1000; i++)
				if (fork() == 0) {
					pause();
					_exit(0);
				}
			signal(SIGTERM, SIG_IGN);
			settle(1);
			hold();
			kill(0, SIGTERM);
			while (wait(NULL) > 0) {
			}
		} else if (!strcmp(word, "terminals")) {
			struct winsize size = {0};
			ioctl(1, TIOCGWINSZ, &size);
			printf("terminals: %d %d, %d columns\n", isatty(1), isatty(2), size.ws_col);
			fflush(stdout);
		} else if (!strcmp(word, "wait")) {
			for (int number = 1; number < NSIG; number++)
				if (number == SIGUSR1 || number == SIGTERM)
					signal(number, on_signal);
			dprintf(1, "waiting\n");
			pause();
			usleep(50 * 1000); // for a signal that comes twice
		} else if (!strcmp(word, "resize")) {
			signal(SIGWINCH, on_resize);
			dprintf(1, "waiting\n");
			for (;;)
				pause();
		} else if (!strcmp(word, "read")) {
			char line[80];
			dprintf(1, "name? ");
			if (fgets(line, sizeof line, stdin))
				printf("hello %s", line);
			fflush(stdout);
		} else if (!strcmp(word, "kill")) {
			kill(getpid(), atoi(*++args));
		} else if (!strcmp(word, "exit")) {
			exit(atoi(*++args));
		}
	}
}

int main(int argc, char **argv) {
	act(argv + 1);
	return 0;
}

#else

void enter(void (*print)(int)) {
	print(1);
	__asm__ volatile("" ::: "memory");
}

#endif
