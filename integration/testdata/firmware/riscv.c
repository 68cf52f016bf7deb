// A 32-bit RISC-V of QEMU's machine virt: the console is the UART at 0x10000000, and a write to
// 0x100000 ends the simulation.
#include "firmware.h"

int main(void);

void put_char(char c) { *(volatile uint8_t *)0x10000000 = (uint8_t)c; }

void power_off(void) {
  for (;;) *(volatile uint32_t *)0x100000 = 0x5555;
}

__attribute__((used, noreturn)) static void trapped(uintptr_t pc, uintptr_t lr, uintptr_t sp) {
  struct registers r = {pc, lr, sp};
  fault(&r);
}

__attribute__((naked, aligned(4), used)) static void trap(void) {
  __asm__("csrr a0, mepc\n mv a1, ra\n mv a2, sp\n j trapped\n");
}

__attribute__((used, noreturn)) static void boot(void) {
  __asm__ volatile("csrw mtvec, %0" ::"r"(trap));
  main();
  power_off();
}

__attribute__((naked, section(".vectors"))) void reset(void) { __asm__("la sp, stack_end\n j boot\n"); }
