// The dumps that operating systems of microcontrollers print for a fault, in the forms of their sources.
#include "firmware.h"

static void put(const char *s) {
  while (*s) put_char(*s++);
}

static void hex(uintptr_t value, int digits, const char *figures) {
  while (digits-- > 0) put_char(figures[value >> 4 * digits & 15]);
}

#define WORD ((int)sizeof(uintptr_t) * 2)

static void x(uintptr_t v) { put("0x"), hex(v, WORD, "0123456789abcdef"); }
static void plain(uintptr_t v) { hex(v, WORD, "0123456789abcdef"); }
static void upper(uintptr_t v) { hex(v, WORD, "0123456789ABCDEF"); }

// follows_call reports whether a call ends at addr, as CmBacktrace finds return addresses in a stack.
static int follows_call(uintptr_t addr) {
#ifdef __thumb__
  if (!(addr & 1) || addr - 1 < (uintptr_t)code_start + 4 || addr > (uintptr_t)code_end) return 0;
  const uint16_t *before = (const uint16_t *)(addr - 1);
  return ((before[-2] & 0xf800) == 0xf000 && (before[-1] & 0xd000) == 0xd000) || (before[-1] & 0xff87) == 0x4780;
#else
  return 0;
#endif
}

enum { MOST = 16 };

// stack_calls collects the return addresses in the stack.
static int stack_calls(uintptr_t sp, uintptr_t *found) {
  int n = 0;
  for (uintptr_t *w = (uintptr_t *)sp; w < stack_end && n < MOST; w++)
    if (follows_call(*w)) found[n++] = *w;
  return n;
}

static void zephyr(const struct registers *r) {
  put("*** Booting Zephyr OS build v3.7.0-12-g3c5f1d0e9a7b ***\n[00:00:00.010,000] <err> os: ***** USAGE FAULT *****\n");
#ifdef __riscv
  put("E:      ra: "), plain(r->lr), put("    gp: "), plain(0), put("\n");
  put("E:    mepc: "), plain(r->pc), put("\nE: \nE: call trace:\nE:       0: ra: "), plain(r->lr), put("\n");
#else
  put("[00:00:00.010,000] <err> os: r3/a4:  "), x(0x20000bd0), put(" r12/ip:  "), x(10), put(" r14/lr:  "), x(r->lr);
  put("\n[00:00:00.010,000] <err> os:  xpsr:  "), x(0x61000000);
  put("\n[00:00:00.010,000] <err> os: Faulting instruction address (r15/pc): "), x(r->pc), put("\n");
#endif
}

static void nuttx(const struct registers *r) {
  uintptr_t calls[MOST];
  int n = stack_calls(r->sp, calls);
  put("up_dump_register: IP:  00000000 SP:  "), plain(r->sp), put(" LR:  "), plain(r->lr), put(" PC:  "), plain(r->pc), put("\n");
  put("sched_dumpstack: backtrace| 1: "), x(r->pc);
  for (int i = 0; i < n; i++) put(" "), x(calls[i]);
  put("\n");
}

static void mbed(const struct registers *r) {
  put("\n++ MbedOS Fault Handler ++\n\nFaultType: HardFault\n\nContext:\nR0   : 00000000\nSP   : "), upper(r->sp);
  put("\nLR   : "), upper(r->lr), put("\nPC   : "), upper(r->pc), put("\nxPSR : 61000000\n\n-- MbedOS Fault Handler --\n");
}

static void rt_thread(const struct registers *r) {
  uintptr_t calls[MOST];
  int n = stack_calls(r->sp, calls);
  put("psr: 0x61000000\nr12: 0x23232323\n lr: "), x(r->lr), put("\n pc: "), x(r->pc), put("\nhard fault on thread: tshell\n");
  put("please use: addr2line -e rtthread.elf -a -f"), put(" "), x(r->pc);
  for (int i = 0; i < n; i++) put(" "), x(calls[i]);
  put("\n");
}

static void cm_backtrace(const struct registers *r) {
  uintptr_t calls[MOST];
  int n = stack_calls(r->sp, calls);
  put("Fault on interrupt or bare metal(no OS) environment\n===== Registers information =====\n  R12: 00000000  LR : "), plain(r->lr);
  put("  PC : "), plain(r->pc), put("  PSR: 61000000\nShow more call stack info by run: addr2line -e CmBacktrace.elf -afpiC "), plain(r->pc);
  for (int i = 0; i < n; i++) put(" "), plain((calls[i] & ~1) - 4);
  put("\n");
}

static void hard_fault(const struct registers *r) {
  put("[HardFault]\r\nPC = "), x(r->pc), put(" LR = "), x(r->lr), put("\r\n");
}

static void esp_riscv(const struct registers *r) {
  put("Guru Meditation Error: Core  0 panic'ed (Illegal instruction). Exception was unhandled.\r\n\r\nCore  0 register dump:\r\nMEPC    : ");
  x(r->pc), put("  RA      : "), x(r->lr), put("  SP      : "), x(r->sp), put("  GP      : "), x(0), put("\r\n\r\nStack memory:\r\n");
  for (uintptr_t *w = (uintptr_t *)(r->sp & ~(uintptr_t)15); w + 4 <= stack_end; w += 4) {
    plain((uintptr_t)w), put(":");
    for (int i = 0; i < 4; i++) put(" "), x(w[i]);
    put("\r\n");
  }
}

void fault(const struct registers *r) {
  zephyr(r);
  nuttx(r);
  mbed(r);
  rt_thread(r);
  cm_backtrace(r);
  hard_fault(r);
  esp_riscv(r);
  power_off();
}
