// A library with the trampoline that ends signal handlers, as libc has it.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "names.h"

// More code than a page, so that a report leaves several places for the library open.
asm(".text\n.skip 8192, 0xcc");

// Unwinding needs the saved registers: rsp, rbp and rip are 160, 120 and 168 bytes above the stack
// pointer.
asm(R"(
	.text
	.cfi_startproc
	.cfi_signal_frame
	.cfi_escape 0x0f, 4, 0x77, 0xa0, 0x01, 0x06
	.cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0x00
	.cfi_escape 0x10, 16, 3, 0x77, 0xa8, 0x01
	nop
trampoline:
	mov $15, %rax
	syscall
	.cfi_endproc
)");
extern "C" void trampoline() __attribute__((visibility("hidden")));

void names::handle(int signal, void (*handler)(int))
{
	struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)();
		unsigned long mask;
	} action = {handler, 0x04000000 /* SA_RESTORER */, trampoline, 0};
	syscall(SYS_rt_sigaction, signal, &action, nullptr, 8);
}
