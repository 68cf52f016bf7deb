// A Cortex-M3 of QEMU's machine mps2-an385: the console is the CMSDK UART at 0x40004000, and
// semihosting ends the simulation.
#include "firmware.h"

int main(void);

static volatile uint32_t *const uart = (volatile uint32_t *)0x40004000;

void put_char(char c) {
  uart[2] = 1; // CTRL: transmit
  uart[0] = (uint8_t)c;
}

void power_off(void) {
  register uint32_t r0 __asm__("r0") = 0x18; // SYS_EXIT
  register uint32_t r1 __asm__("r1") = 0x20026; // ADP_Stopped_ApplicationExit
  for (;;) __asm__ volatile("bkpt 0xab" ::"r"(r0), "r"(r1) : "memory");
}

// The frame of an exception: r0-r3, r12, lr, pc, xpsr.
__attribute__((used)) static void faulted(uint32_t *frame) {
  struct registers r = {frame[6], frame[5], (uintptr_t)(frame + 8)};
  fault(&r);
}

__attribute__((naked)) void hard_fault_handler(void) { __asm__("mov r0, sp\n b faulted\n"); }

void reset(void) {
  main();
  power_off();
}

__attribute__((section(".vectors"), used)) static void *const vectors[] = {
    stack_end, reset, hard_fault_handler, hard_fault_handler, hard_fault_handler, hard_fault_handler, hard_fault_handler,
};
