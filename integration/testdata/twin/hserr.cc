// Dies as a Java virtual machine does: prints the parts of its error log that have to do with frames,
// in the form of JDK 17. The maps come after 400 other lines.
#include "inventory.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static void frame(const char *before, unsigned long pc) {
  Dl_info info;
  if (!dladdr((void *)pc, &info))
    return;
  printf("%sC  [%s+0x%lx]", before, strrchr(info.dli_fname, '/') + 1, pc - (unsigned long)info.dli_fbase);
  if (info.dli_sname)
    printf("  %s+0x%lx", info.dli_sname, pc - (unsigned long)info.dli_saddr);
  printf("\n");
}

static void on_fault(int, siginfo_t *, void *context) {
  void *frames[64];
  unsigned long pc = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
  int n = backtrace(frames, 64), from = 0;
  while (from < n && (unsigned long)frames[from] != pc)
    from++;
  printf("#\n# A fatal error has been detected by the Java Runtime Environment:\n#\n"
         "#  SIGSEGV (0xb) at pc=0x%016lx, pid=%d, tid=%d\n#\n# Problematic frame:\n",
         pc, getpid(), getpid());
  frame("# ", pc);
  printf("#\n\nNative frames: (J=compiled Java code, A=aot compiled Java code, j=interpreted, Vv=VM code, C=native code)\n");
  for (int i = from; i < n; i++)
    frame("", (unsigned long)frames[i]);
  printf("\nRegister to memory mapping:\n\n");
  for (int i = 0; i < 400; i++)
    printf("0x%016lx: %016lx %016lx\n", (unsigned long)context + 16 * i, pc, pc);
  printf("\nDynamic libraries:\n");
  char line[4096];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps))
    fputs(line, stdout);
  printf("\n\nVM Arguments:\njava_command: Inventory\n");
  fflush(stdout);
  _exit(1);
}

static int leaf(int account) {
  int sum = fall(account); // line: leaf
  return sum + 1;
}

int main(int argc, char **) {
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  int sum = inventory_run(leaf, argc * 16); // line: main
  return sum & 1;
}
