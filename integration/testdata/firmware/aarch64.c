// An AArch64 of QEMU's machine virt: the console is the UART at 0x09000000, and semihosting ends the
// simulation. The dumps are those of Trusted Firmware-A, U-Boot and Zephyr.
#include "firmware.h"

int main(void);

void put_char(char c) { *(volatile uint8_t *)0x09000000 = (uint8_t)c; }

void power_off(void) {
  static const uintptr_t stopped[] = {0x20026, 0}; // ADP_Stopped_ApplicationExit
  register uintptr_t x0 __asm__("x0") = 0x18;      // SYS_EXIT
  register const void *x1 __asm__("x1") = stopped;
  for (;;) __asm__ volatile("hlt 0xf000" ::"r"(x0), "r"(x1) : "memory");
}

static __attribute__((noinline)) void put(const char *s) {
  while (*s) put_char(*s++);
}

static void hex(uintptr_t value, int digits) {
  while (digits-- > 0) put_char("0123456789abcdef"[value >> 4 * digits & 15]);
}

static void x(uintptr_t v) { put("0x"), hex(v, 16); }

static void zephyr(const struct registers *r) {
  put("*** Booting Zephyr OS build v3.7.0-12-g3c5f1d0e9a7b ***\nE: ELR_ELn: "), x(r->pc), put("\nE: x29/fp:  "), x(0), put(" x30/lr:  "), x(r->lr), put("\n");
}

// U-Boot prints the addresses less the distance of its relocation first.
static void u_boot(const struct registers *r) {
  const uintptr_t moved = 0x100000000;
  put("\"Synchronous Abort\" handler, esr 0x02000000\r\nelr: "), hex(r->pc, 16), put(" lr : "), hex(r->lr, 16), put(" (reloc)\r\nelr: ");
  hex(r->pc + moved, 16), put(" lr : "), hex(r->lr + moved, 16), put("\r\n");
}

struct frame {
  struct frame *parent;
  uintptr_t lr;
};

static void trusted_firmware(const struct registers *r, const struct frame *frame) {
  put("Unhandled Exception in EL3.\r\nx30            = "), x(r->lr), put("\r\nx29            = "), x((uintptr_t)frame);
  put("\r\nelr_el3        = "), x(r->pc), put("\r\nBACKTRACE: START: panic\r\n0: EL3: "), x((uintptr_t)trusted_firmware), put("\r\n");
  for (int i = 1; frame && frame->parent; frame = frame->parent, i++) put_char('0' + i), put(": EL3: "), x(frame->lr - 4), put("\r\n");
  put("BACKTRACE: END: panic\r\n");
}

__attribute__((used, noreturn)) static void trapped(uintptr_t pc, uintptr_t lr, const struct frame *frame) {
  struct registers r = {pc, lr, 0};
  zephyr(&r);
  u_boot(&r);
  trusted_firmware(&r, frame);
  power_off();
}

__attribute__((naked, aligned(2048), used)) static void trap(void) {
  __asm__(".skip 0x200\n mrs x0, elr_el1\n mov x1, x30\n mov x2, x29\n b trapped\n"); // an exception of this level, with its own stack
}

__attribute__((used, noreturn)) static void boot(void) {
  __asm__ volatile("msr vbar_el1, %0\n isb" ::"r"(trap));
  main();
  power_off();
}

__attribute__((naked, section(".vectors"))) void reset(void) { __asm__("adrp x0, stack_end\n add x0, x0, :lo12:stack_end\n mov sp, x0\n mov x29, xzr\n mov x30, xzr\n b boot\n"); }
