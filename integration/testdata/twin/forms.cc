// Prints its stack in the form of another program, which its first argument names. With "signal" as
// second argument, from the handler of a fault.
#include "leaf.h"
#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

static std::string form;
static uintptr_t fault; // address of the faulting instruction; 0: no fault

struct Place {
  uintptr_t addr, base, first; // first: of the first page
  std::string path, symbol, id;
  uintptr_t within; // the symbol
};

static std::string hex(uintptr_t n, const char *format = "0x%lx") {
  char b[32];
  snprintf(b, sizeof b, format, n);
  return b;
}

struct Search {
  uintptr_t base;
  std::string id;
};

// Takes the build ID of the module with this load base.
static int take_id(dl_phdr_info *info, size_t, void *data) {
  Search *s = (Search *)data;
  if (info->dlpi_addr != s->base)
    return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) &p = info->dlpi_phdr[i];
    if (p.p_type != PT_NOTE)
      continue;
    const char *at = (const char *)info->dlpi_addr + p.p_vaddr, *end = at + p.p_memsz;
    while (at < end) {
      const ElfW(Nhdr) *n = (const ElfW(Nhdr) *)at;
      const unsigned char *text = (const unsigned char *)at + sizeof *n + (n->n_namesz + 3) / 4 * 4;
      for (unsigned k = 0; n->n_type == NT_GNU_BUILD_ID && k < n->n_descsz; k++)
        s->id += hex(text[k], "%02lX");
      at = (const char *)text + (n->n_descsz + 3) / 4 * 4;
    }
  }
  return 1;
}

static Place place(void *addr) {
  Place p{};
  p.addr = (uintptr_t)addr;
  Dl_info info;
  link_map *map = nullptr;
  if (!dladdr1(addr, &info, (void **)&map, RTLD_DL_LINKMAP))
    return p;
  p.base = map->l_addr;
  p.first = (uintptr_t)info.dli_fbase;
  p.path = info.dli_fname;
  if (info.dli_sname) {
    p.symbol = info.dli_sname;
    p.within = p.addr - (uintptr_t)info.dli_saddr;
  }
  Search s{p.base, ""};
  dl_iterate_phdr(take_id, &s);
  p.id = s.id;
  return p;
}

static std::string demangled(const std::string &name) {
  int status;
  char *d = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string s = d ? d : name;
  free(d);
  return s;
}

// A frame as backtrace_symbols prints it, but demangled.
static std::string readable(const Place &p) {
  std::string in = p.symbol.empty() ? "+" + hex(p.addr - p.base) : demangled(p.symbol) + "+" + hex(p.within);
  return p.path + "(" + in + ") [" + hex(p.addr) + "]";
}

static void print_maps() {
  FILE *f = fopen("/proc/self/maps", "r");
  for (int c; f && (c = getc(f)) != EOF;)
    putchar(c);
}

static void print_mongodb(const std::vector<Place> &all) {
  auto frame = [](const Place &p) {
    std::string s = "{\"a\":\"" + hex(p.addr, "%lX") + "\",\"b\":\"" + hex(p.base, "%lX") + "\",\"o\":\"" + hex(p.addr - p.base, "%lX") + "\"";
    if (!p.symbol.empty())
      s += ",\"s\":\"" + p.symbol + "\",\"C\":\"" + demangled(p.symbol) + "\",\"s+\":\"" + hex(p.within, "%lX") + "\"";
    return s + "}";
  };
  std::string frames, somap, seen;
  for (auto &p : all) {
    frames += (frames.empty() ? "" : ",") + frame(p);
    if (seen.find(" " + p.path + " ") == std::string::npos && !p.id.empty()) {
      seen += " " + p.path + " ";
      bool main = &p == &all[0];
      somap += (somap.empty() ? "{\"b\":\"" : ",{\"b\":\"") + hex(p.base, "%lX") + "\"" + (main ? "" : ",\"path\":\"" + p.path + "\"") +
               ",\"elfType\":3,\"buildId\":\"" + p.id + "\"}";
    }
  }
  std::string trace = "\"backtrace\":[" + frames + "],\"processInfo\":{\"mongodbVersion\":\"7.0.1\",\"somap\":[" + somap + "]}";
  if (form == "mongodb-old") {
    printf("----- BEGIN BACKTRACE -----\n{%s}\n-----  END BACKTRACE  -----\n", trace.c_str());
    return;
  }
  const char *head = "{\"t\":{\"$date\":\"2026-11-20T10:00:00.123+00:00\"},\"s\":\"I\",\"c\":\"CONTROL\",\"id\":31380,\"ctx\":\"conn1\",\"msg\":";
  printf("%s\"BACKTRACE\",\"attr\":{\"bt\":{%s}},\"tags\":[]}\n", head, trace.c_str());
  for (auto &p : all)
    printf("%s\"Frame\",\"attr\":{\"frame\":%s}}\n", head, frame(p).c_str());
}

static void print_frame(int i, const Place &p, const char *plain) {
  std::string symbol = p.symbol.empty() ? "" : p.symbol + "+" + hex(p.within);
  std::string dense = p.path + "(" + (symbol.empty() ? "+" + hex(p.addr - p.base) : symbol) + ")[" + hex(p.addr) + "]";
  if (form == "ceph")
    printf(" %d: %s\n", i + 1, plain);
  else if (form == "samba")
    printf(" #%d %s\n", i, plain);
  else if (form == "openmpi")
    printf("[node07:04711] [%2d] %s\n", i, dense.c_str());
  else if (form == "godot")
    printf("[%d] %s (??:0)\n", i + 1, plain);
  else if (form == "v8")
    printf("    %s\n", readable(p).c_str());
  else if (form == "mysql")
    printf("%s\n", readable(p).c_str());
  else if (form == "abort" || form == "redis" || form == "segfault")
    printf("%s\n", dense.c_str());
  else if (form == "bare")
    printf("%s\n", (i ? "[" + hex(p.addr) + "]" : dense).c_str());
  else if (form == "python")
    printf("  Binary file \"%s\", at %s [%s]\n", p.path.c_str(), (symbol.empty() ? "+" + hex(p.addr - p.first) : symbol).c_str(), hex(p.addr, "0x%016lx").c_str());
  else if (form == "execinfo")
    printf("%s <%s> at %s\n", hex(p.addr).c_str(), (symbol.empty() ? "???+" + hex(p.addr - p.base) : symbol).c_str(), p.path.c_str());
  else if (form == "mtrace")
    printf("@ %s:%s[%s] + 0x55f2006d82a0 0xa\n", p.path.c_str(), symbol.empty() ? "" : ("(" + symbol + ")").c_str(), hex(p.addr - p.first).c_str());
  else if (form == "mtrace-old")
    printf("@ %s:%s[%s] - 0x55f2006d82a0\n", p.path.c_str(), symbol.empty() ? "" : ("(" + symbol + ")").c_str(), hex(p.addr).c_str());
  else if (form == "clickhouse") {
    bool own = p.path.find(".so") == std::string::npos;
    printf("2026.11.20 10:00:00.%06d [ 4711 ] {} <Fatal> BaseDaemon: %d. %s @ %s%s\n", i, i, symbol.empty() ? "?" : demangled(p.symbol).c_str(),
           hex(p.addr - p.base, "0x%016lx").c_str(), own ? "" : (" in " + p.path).c_str());
  }
}

static void print() {
  void *frames[64];
  int n = backtrace(frames, 64); // line: print
  char **plain = backtrace_symbols(frames, n);
  std::vector<Place> all;
  for (int i = 0; i < n; i++)
    all.push_back(place(frames[i]));
  int from = 0;
  for (int i = 0; i < n && fault; i++)
    if (all[i].addr == fault)
      from = i;
  if (form == "redis") {
    printf("------ STACK TRACE ------\nEIP:\n");
    print_frame(0, all[from], nullptr);
    printf("\nBacktrace:\n");
    from--; // the trampoline
  } else if (form == "segfault") {
    printf("*** Segmentation fault\nRegister dump:\n\n RIP: %s\n\nBacktrace:\n", hex(fault, "%016lx").c_str());
  } else if (form == "abort") {
    printf("*** Error in `./forms': double free or corruption (fasttop): 0x00000000013f0010 ***\n======= Backtrace: =========\n");
    from = 0;
  } else if (form == "ceph") {
    printf(" ceph version 17.2.6 (d7ff0d10654d2280e08f1ab989c7cdf3064446a5) quincy (stable)\n");
    from = 0;
  } else if (form == "clickhouse") {
    printf("2026.11.20 10:00:00.000000 [ 4711 ] {} <Fatal> BaseDaemon: (version 24.8.4.13 (official build), build id: %s, git hash: 53195bc189e334a3) "
           "(from thread 4710)%s\n",
           all[0].id.c_str(), fault ? " (no query) Received signal Segmentation fault (11)" : "");
  } else {
    from = 0;
    if (form == "python")
      printf("Current thread's C stack trace (most recent call first):\n");
    else if (form == "v8")
      printf("==== C stack trace ===============================\n\n");
  }
  if (form.compare(0, 7, "mongodb") == 0)
    print_mongodb(all);
  for (int i = from; i < n; i++)
    print_frame(i, all[i], plain[i]);
  if (form == "abort" || form == "bare") {
    printf("======= Memory map: ========\n");
    print_maps();
  }
  fflush(stdout);
}

static void on_fault(int, siginfo_t *, void *context) {
  fault = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
  print(); // line: handler
  _exit(1);
}

int main(int argc, char **argv) {
  form = argc > 1 ? argv[1] : "";
  bool dies = argc > 2 && !strcmp(argv[2], "signal");
  if (dies) {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
  }
  int sum = inventory_run(dies ? dying_leaf : leaf, dies ? 16 : argc * 16); // line: main
  return sum & 1;
}
