// Prints its stack as programs print it that Debian does not have, or that are large: each form is
// that of the program's source. Usage: traces FORM,FORM... [signal] [maps-before | maps-after]
#include "leaf.h"
#include <algorithm>
#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <unistd.h>
#include <unwind.h>
#include <vector>

// A Place is the address of a frame: pc is the return address, or the address itself if a signal
// interrupted the frame.
struct Place {
  uintptr_t pc, inside; // inside is within the call
  uintptr_t bias, base, offset;
  std::string path, name; // name is that of an exported function, or empty
  bool program;
};

static std::string forms;
static std::string form; // of the current trace
static bool maps_before, maps_after;

static _Unwind_Reason_Code add(_Unwind_Context *context, void *all) {
  int exact = 0;
  uintptr_t pc = _Unwind_GetIPInfo(context, &exact);
  if (pc)
    ((std::vector<Place> *)all)->push_back(Place{pc, exact ? pc : pc - 1});
  return _URC_NO_REASON;
}

static void find(Place &p) {
  Dl_info info{};
  link_map *map = nullptr;
  if (!dladdr1((void *)p.inside, &info, (void **)&map, RTLD_DL_LINKMAP))
    return;
  p.bias = map->l_addr;
  p.base = (uintptr_t)info.dli_fbase;
  p.path = info.dli_fname;
  p.program = !map->l_name[0];
  if (p.program) {
    char path[4096] = "";
    if (readlink("/proc/self/exe", path, sizeof path - 1) > 0)
      p.path = path;
  }
  if (info.dli_sname) {
    int status = 0;
    char *shown = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
    p.name = shown ? shown : info.dli_sname;
    p.offset = p.pc - (uintptr_t)info.dli_saddr;
    free(shown);
  }
}

static void print_maps(bool only_first) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[4096];
  while (maps && fgets(line, sizeof line, maps)) {
    if (!only_first) {
      fputs(line, stdout);
    } else if (strstr(line, " r-xp ")) {
      printf("[2026-11-20 10:00:00.000][12][critical][backtrace] [./source/server/backtrace.h:93] Address mapping: %.*s %s",
             (int)strcspn(line, " "), line, strchr(line, '/'));
      break;
    }
  }
  if (maps)
    fclose(maps);
}

static int print_build_id_of(dl_phdr_info *info, size_t, void *) {
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) &p = info->dlpi_phdr[i];
    const char *at = (const char *)info->dlpi_addr + p.p_vaddr, *end = at + p.p_memsz;
    while (p.p_type == PT_NOTE && at + sizeof(ElfW(Nhdr)) <= end) {
      const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
      const unsigned char *id = (const unsigned char *)at + sizeof *note + (note->n_namesz + 3) / 4 * 4;
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4) {
        printf(" (BuildId: ");
        for (unsigned k = 0; k < note->n_descsz; k++)
          printf("%02x", id[k]);
        printf(")");
        return 1;
      }
      at = (const char *)id + (note->n_descsz + 3) / 4 * 4;
    }
  }
  return 1; // the first object is the program
}

static void print_build_id() { dl_iterate_phdr(print_build_id_of, nullptr); }

// without_parameters is a name as glog shows it.
static std::string without_parameters(const std::string &name) {
  size_t at = name.find('(');
  return at == std::string::npos ? name : name.substr(0, at) + "()";
}

static void print_frame(int i, const Place &p) {
  void *pc = (void *)p.pc;
  const char *name = p.name.c_str(), *path = p.path.c_str();
  bool named = !p.name.empty();
  if (form == "glog") {
    printf("    @ %18p  %s\n", pc, named ? without_parameters(p.name).c_str() : "(unknown)");
  } else if (form == "glog-paths") {
    printf("    @ %18p  (%s+0x%lx)\n", pc, path, p.pc - 1 - p.bias);
  } else if (form == "absl") {
    printf("    @ %18p  %9d  %s\n", pc, 48, named ? name : "(unknown)");
  } else if (form == "folly") {
    printf("    @ %016lx %s\n", p.pc, named ? name : "(unknown)");
  } else if (form == "envoy") {
    printf("[2026-11-20 10:00:00.000][12][critical][backtrace] [./source/server/backtrace.h:96] #%d: %s%s[%p]\n", i, name, named ? " " : "", pc);
  } else if (form == "pytorch") {
    printf("frame #%d: %s + 0x%lx (%p in %s)\n", i, named ? name : "<unknown function>", named ? p.offset : p.pc - p.base, pc, path);
  } else if (form == "seastar") {
    printf("  %s%s0x%lx\n", p.program ? "" : path, p.program ? "" : "+", p.inside - p.bias);
  } else if (form == "seastar-list" || form == "seastar-id") {
    printf(" %s%s0x%lx", p.program ? "" : path, p.program ? "" : "+", p.inside - p.bias);
  } else if (form == "rust") {
    printf("%4d: %18p - %s\n", i, pc, named ? name : "<unknown>");
  } else if (form == "boost") {
    if (named)
      printf("%2d# %s in %s\n", i, name, path);
    else
      printf("%2d# 0x%016lX in %s\n", i, p.pc, path);
  } else if (form == "stdtrace") {
    printf("%4d# %s at :0 [0x%lx]\n", i, name, p.inside);
  } else if (form == "backward") {
    printf("#%-4d Object \"%s\", at 0x%lx, in %s\n", i, path, p.inside, name);
  } else if (form == "cpptrace") {
    printf("#%d 0x%016lx%s%s at %s\n", i, p.inside, named ? " in " : "", name, path);
  }
}

static void print_trace(const std::vector<Place> &all) {
  if (form == "envoy") {
    puts("[2026-11-20 10:00:00.000][12][critical][backtrace] [./source/server/backtrace.h:91] Backtrace (use tools/stack_decode.py to get line numbers):");
    print_maps(true);
  } else if (form == "seastar") {
    puts("Backtrace:");
  } else if (form == "seastar-list" || form == "seastar-id") {
    printf("Reactor stalled for 33 ms on shard 3. Backtrace:");
  } else if (form == "cpptrace") {
    puts("Stack trace (most recent call first):");
  } else if (form == "backward") {
    puts("Stack trace (most recent call last):");
  } else if (form == "rust") {
    puts("stack backtrace:");
  }
  for (size_t i = 0; i < all.size(); i++) {
    size_t k = form == "backward" ? all.size() - 1 - i : i;
    print_frame(k, all[k]);
  }
  if (form == "seastar-id")
    print_build_id();
  if (form == "seastar-list" || form == "seastar-id")
    puts("");
}

static void print() {
  std::vector<Place> all;
  _Unwind_Backtrace(add, &all); // line: print
  for (Place &p : all)
    find(p);
  if (maps_before)
    print_maps(false);
  for (size_t from = 0, to; from < forms.size(); from = to + 1) {
    to = std::min(forms.find(',', from), forms.size());
    form = forms.substr(from, to - from);
    print_trace(all);
  }
  if (maps_after)
    print_maps(false);
  fflush(stdout);
}

static void on_fault(int) {
  print(); // line: handler
  _exit(1);
}

int main(int argc, char **argv) {
  bool dies = false;
  forms = argc > 1 ? argv[1] : "";
  for (int i = 2; i < argc; i++) {
    dies = dies || !strcmp(argv[i], "signal");
    maps_before = maps_before || !strcmp(argv[i], "maps-before");
    maps_after = maps_after || !strcmp(argv[i], "maps-after");
  }
  if (dies)
    signal(SIGSEGV, on_fault);
  int sum = inventory_run(dies ? dying_leaf : leaf, 16); // line: main
  return sum & 1;
}
