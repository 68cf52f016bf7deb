#include "crashlog.h"

#include <elf.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

namespace crashlog {
namespace {

constexpr int kMaxFrames = 16;

struct Stack {
  uintptr_t pc[kMaxFrames];
  int depth = 0;
};

struct {
  const void *at;
  size_t size;
  Stack stack;
} last_freed;

const void *watched_data;
const char *hook_name;

// Follows the chain of frame pointers; every frame found so is a return address.
__attribute__((always_inline)) inline void walk(Stack *stack, const uintptr_t *fp) {
  while (stack->depth < kMaxFrames && fp != nullptr && (reinterpret_cast<uintptr_t>(fp) & 7) == 0 && fp[1] != 0) {
    stack->pc[stack->depth++] = fp[1];
    const uintptr_t *up = reinterpret_cast<const uintptr_t *>(fp[0]);
    if (up <= fp) break;
    fp = up;
  }
}

const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

const char *program_name() {
  static char path[256];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  return n > 0 ? base_name(path) : "";
}

void print_build_id(const dl_phdr_info *info) {
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) &ph = info->dlpi_phdr[i];
    if (ph.p_type != PT_NOTE) continue;
    const char *p = reinterpret_cast<const char *>(info->dlpi_addr + ph.p_vaddr);
    const char *end = p + ph.p_memsz;
    while (p + sizeof(ElfW(Nhdr)) <= end) {
      const ElfW(Nhdr) *note = reinterpret_cast<const ElfW(Nhdr) *>(p);
      const char *name = p + sizeof *note;
      const unsigned char *desc = reinterpret_cast<const unsigned char *>(name) + ((note->n_namesz + 3) & ~3u);
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
        for (unsigned b = 0; b < note->n_descsz; b++) printf("%02x", desc[b]);
        return;
      }
      p = reinterpret_cast<const char *>(desc) + ((note->n_descsz + 3) & ~3u);
    }
  }
}

int print_module(dl_phdr_info *info, size_t, void *count) {
  int id = (*static_cast<int *>(count))++;
  const char *name = info->dlpi_name[0] != 0 ? base_name(info->dlpi_name) : program_name();
  printf("{{{module:%d:%s:elf:", id, name);
  print_build_id(info);
  printf("}}}\n");
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) &ph = info->dlpi_phdr[i];
    if (ph.p_type != PT_LOAD) continue;
    constexpr uintptr_t kPage = 4096;
    uintptr_t first = (info->dlpi_addr + ph.p_vaddr) & -kPage;
    uintptr_t past = (info->dlpi_addr + ph.p_vaddr + ph.p_memsz + kPage - 1) & -kPage;
    printf("{{{mmap:0x%016lx:0x%lx:load:%d:%s%s%s:0x%lx}}}\n", first, past - first, id, ph.p_flags & PF_R ? "r" : "",
           ph.p_flags & PF_W ? "w" : "", ph.p_flags & PF_X ? "x" : "", first - info->dlpi_addr);
  }
  return 0;
}

void print_stack(const Stack &stack, bool first_is_precise) {
  for (int i = 0; i < stack.depth; i++)
    printf("    {{{bt:%d:0x%016lx:%s}}}\n", i, stack.pc[i], i == 0 && first_is_precise ? "pc" : "ra");
}

// The program is lost: stdio in a signal handler is good enough for a fixture.
void on_signal(int signal, siginfo_t *info, void *context) {
  const greg_t *regs = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
  uintptr_t pc = regs[REG_RIP];
  printf("{{{reset}}}\n");
  int count = 0;
  dl_iterate_phdr(print_module, &count);
  line(kError, "signal %d: bad access to 0x%lx in {{{pc:0x%016lx:pc}}}", signal,
       reinterpret_cast<uintptr_t>(info->si_addr), pc);
  Stack stack;
  stack.pc[stack.depth++] = pc;
  walk(&stack, reinterpret_cast<const uintptr_t *>(regs[REG_RBP]));
  print_stack(stack, true);
  uintptr_t offset = static_cast<const char *>(info->si_addr) - static_cast<const char *>(last_freed.at);
  if (offset < last_freed.size) {
    line(kError, "the address is %lu bytes inside memory that was freed by", offset);
    print_stack(last_freed.stack, false);
  }
  line(kWarn, "last shelf in {{{data:0x%016lx}}}, exit hook {{{symbol:%s}}} not run",
       reinterpret_cast<uintptr_t>(watched_data), hook_name);
  line(kInfo, "restarting in 5 s");
  fflush(stdout);
  _exit(128 + signal);
}

}  // namespace

void install(const void *watched, const char *hook) {
  watched_data = watched;
  hook_name = hook;
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}

void line(Level level, const char *format, ...) {
  static const char *const names[] = {"\033[32mINFO\033[0m ", "\033[33mWARN\033[0m ", "\033[1m\033[31mERROR\033[0m"};
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  tm utc;
  gmtime_r(&now.tv_sec, &utc);
  char stamp[32];
  strftime(stamp, sizeof stamp, "%H:%M:%S", &utc);
  printf("%s.%03ld %s ", stamp, now.tv_nsec / 1000000, names[level]);
  va_list args;
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  putchar('\n');
}

__attribute__((noinline)) void freed(const void *p, size_t size) {
  last_freed.at = p;
  last_freed.size = size;
  last_freed.stack.depth = 0;
  walk(&last_freed.stack, static_cast<const uintptr_t *>(__builtin_frame_address(0)));
}

}  // namespace crashlog
