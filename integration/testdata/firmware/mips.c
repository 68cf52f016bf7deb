// A MIPS of QEMU's machine malta: the console is the UART at 0xb80003f8, and a write to 0xbf000500 ends the
// simulation. The dumps are those of Zephyr, NuttX and U-Boot.
#include "firmware.h"

int main(void);

void put_char(char c) { *(volatile uint8_t *)0xb80003f8 = (uint8_t)c; }

void power_off(void) {
  for (;;) *(volatile uint32_t *)0xbf000500 = 0x42;
}

static void put(const char *s) {
  while (*s) put_char(*s++);
}

static void plain(uintptr_t v) {
  for (int shift = 28; shift >= 0; shift -= 4) put_char("0123456789abcdef"[v >> shift & 15]);
}

__attribute__((used, noreturn)) static void trapped(uintptr_t pc, uintptr_t lr) {
  put("E: $28   : "), plain(0), put("(gp)         (sp)         (s8) "), plain(lr), put("(ra)\nE: EPC   : "), plain(pc);
  put("\nup_registerdump: MFLO:00000000 MFHI:00000000 EPC:"), plain(pc), put(" STATUS:00000000\nup_registerdump: GP:00000000 SP:00000000 FP:00000000 RA:"), plain(lr);
  put("\nepc   : "), plain(pc), put("\nra    : "), plain(lr), put("\n");
  power_off();
}

__attribute__((naked, used)) static void trap(void) {
  __asm__(".set noat\n mfc0 $4, $14\n move $5, $31\n la $25, trapped\n jr $25\n");
}

// The vector of exceptions is at 0x80000180 if the bit BEV of the register Status is not set.
__attribute__((used, noreturn)) static void boot(void) {
  volatile uint32_t *vector = (uint32_t *)0xa0000180;
  vector[0] = 0x08000000 | ((uintptr_t)trap >> 2 & 0x3ffffff); // j trap
  vector[1] = 0;
  __asm__ volatile("mtc0 $0, $12\n ehb\n");
  main();
  power_off();
}

__attribute__((naked, section(".vectors"))) void reset(void) { __asm__("la $29, stack_end\n j boot\n"); }
