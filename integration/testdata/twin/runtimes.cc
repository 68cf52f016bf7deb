// Prints its stack as Xorg and Julia do, or has libgfortran print it. "xorg", "julia" and "fortran"
// print it from a function; "xorg-fault" and "fortran-fault" after a fault. After that of Julia come
// the maps of the process.
#include "leaf.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *form;

static void print() {
  void *frames[64];
  int n = backtrace(frames, 64); // line: print
  if (!strcmp(form, "julia")) {
    fprintf(stderr, "[%d] signal (11.1): Segmentation fault\n", getpid());
    for (int i = 0; i < n; i++) {
      Dl_info info;
      dladdr(frames[i], &info);
      fprintf(stderr, "unknown function (ip: %p) at %s\n", (char *)frames[i] - 1, info.dli_fname);
    }
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
      fputs(line, stderr);
    return;
  }
  fprintf(stderr, "(EE) \n(EE) Backtrace:\n");
  for (int i = 0; i < n; i++) {
    Dl_info info;
    dladdr(frames[i], &info);
    if (info.dli_sname)
      fprintf(stderr, "(EE) %d: %s (%s+0x%x) [%p]\n", i, info.dli_fname, info.dli_sname, (unsigned)((char *)frames[i] - (char *)info.dli_saddr), frames[i]);
    else
      fprintf(stderr, "(EE) %d: %s (?+0x%x) [%p]\n", i, info.dli_fname, 0, frames[i]);
  }
  fprintf(stderr, "(EE) \n(EE) Segmentation fault at address 0x0\n");
}

static void on_fault(int) {
  print(); // line: handler
  _exit(1);
}

static int fortran_leaf(int account) {
  void (*show)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "_gfortran_backtrace");
  show(); // line: show
  return account + 1;
}

int main(int argc, char **argv) {
  form = argv[1];
  bool fault = strstr(form, "-fault");
  if (!strcmp(form, "xorg-fault"))
    signal(SIGSEGV, on_fault);
  if (strstr(form, "fortran")) {
    dlopen("libgfortran.so.5", RTLD_NOW | RTLD_GLOBAL);
    // What the main program that gfortran makes calls: its options, of which the fourth is -fbacktrace.
    int options[] = {2116, 4095, 0, 1, 1, 0, 31};
    ((void (*)(int, int *))dlsym(RTLD_DEFAULT, "_gfortran_set_options"))(7, options);
  }
  int sum = inventory_run(fault ? dying_leaf : !strcmp(form, "fortran") ? fortran_leaf : leaf, argc * 16); // line: main
  return sum & 1;
}
