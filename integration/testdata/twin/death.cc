// Dies of a write to an address that is not mapped, and prints the line that Linux logs for it, with
// the code around the instruction. The argument "old" prints the line of Linux before 6.1.
#include "inventory.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static bool old;

static void on_fault(int, siginfo_t *info, void *context) {
  unsigned long ip = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
  unsigned long sp = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RSP];
  unsigned long start, end, offset;
  char line[4096], path[4096] = "";
  FILE *maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps))
    if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %s", &start, &end, &offset, path) >= 3 && start <= ip && ip < end)
      break;
  printf("[27171.131265] death[%d]: segfault at %lx ip %016lx sp %016lx error 6 in %s[", getpid(), (unsigned long)info->si_addr, ip, sp, strrchr(path, '/') + 1);
  if (!old)
    printf("%lx,", ip - start + offset);
  printf("%lx+%lx] likely on CPU 1 (core 1, socket 0)\n[27171.131276] Code:", start, end - start);
  for (int i = -42; i < 22; i++)
    printf(i ? " %02x" : " <%02x>", ((unsigned char *)ip)[i]);
  printf("\n");
  fflush(stdout);
  _exit(1);
}

static int leaf(int account) {
  int sum = fall(account); // line: leaf
  return sum + 1;
}

int main(int argc, char **argv) {
  old = argc > 1 && !strcmp(argv[1], "old");
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  int sum = inventory_run(leaf, argc * 16); // line: main
  return sum & 1;
}
