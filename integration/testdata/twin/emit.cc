// Prints its stack as programs do that are not in Debian: "emit FORM [signal]". With "signal", from
// the handler of a fault. The addresses are those of the process, each prepared as the program with
// this form does.
#include "leaf.h"
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <ctype.h>
#include <link.h>
#include <map>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <string>
#include <unistd.h>
#include <vector>

static std::string form;

// A module of the process, and an address in it.
struct Place {
  uintptr_t address;
  std::string path, id; // the build ID in hexadecimal digits
  uintptr_t bias = 0, base = 0, end = 0; // base: of the first page
  uintptr_t map = 0, offset = 0;         // address and file offset of the executable mapping
  bool exact = false;                    // no return address: the frame was interrupted by a signal

  const char *name() const { return path.c_str() + path.rfind('/') + 1; }
};

static std::string own_path() {
  char path[4096];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  return std::string(path, n > 0 ? n : 0);
}

static std::string build_id(const char *notes, size_t size) {
  for (size_t at = 0; at + 12 <= size;) {
    auto *note = (const ElfW(Nhdr) *)(notes + at);
    size_t desc = at + 12 + (note->n_namesz + 3 & ~3u);
    if (note->n_type == NT_GNU_BUILD_ID && !memcmp(notes + at + 12, "GNU", 4)) {
      std::string id;
      char digits[3];
      for (size_t i = 0; i < note->n_descsz; i++)
        snprintf(digits, sizeof digits, "%02x", (unsigned char)notes[desc + i]), id += digits;
      return id;
    }
    at = desc + (note->n_descsz + 3 & ~3u);
  }
  return "";
}

static int find(dl_phdr_info *info, size_t, void *data) {
  Place &p = *(Place *)data;
  bool inside = false;
  uintptr_t low = -1, high = 0;
  std::string id;
  uintptr_t map = 0, offset = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) &h = info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + h.p_vaddr;
    if (h.p_type == PT_NOTE && id.empty())
      id = build_id((const char *)start, h.p_memsz);
    if (h.p_type != PT_LOAD)
      continue;
    inside = inside || p.address - start < h.p_memsz;
    low = start < low ? start : low;
    high = start + h.p_memsz > high ? start + h.p_memsz : high;
    if (h.p_flags & PF_X && !map)
      map = start & ~4095ul, offset = h.p_offset & ~4095ul;
  }
  if (!inside)
    return 0;
  p.path = *info->dlpi_name ? info->dlpi_name : own_path();
  p.id = id, p.bias = info->dlpi_addr, p.base = low & ~4095ul, p.end = high + 4095 & ~4095ul, p.map = map, p.offset = offset;
  return 1;
}

// debug_id returns Breakpad's identifier of a build ID: the first 16 bytes as the fields of a GUID,
// and an age.
static std::string debug_id(const std::string &id) {
  static const int order[] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
  std::string text;
  for (int byte : order)
    for (int digit = 0; digit < 2; digit++)
      text += toupper(id[2 * byte + digit]);
  return text + "0";
}

static std::string shown(const char *mangled) {
  int status;
  char *demangled = mangled ? abi::__cxa_demangle(mangled, 0, 0, &status) : 0;
  return demangled ? demangled : mangled ? mangled : "";
}

static void print_breakpad(const std::vector<Place> &stack) {
  printf("Operating system: Linux\nCPU: amd64\n\nCrash reason:  SIGABRT\nCrash address: 0x3e800001234\n"
         "Process uptime: not available\n\nThread 0 (crashed)\n");
  std::map<uintptr_t, Place> modules;
  for (size_t i = 0; i < stack.size(); i++) {
    const Place &p = stack[i];
    Dl_info nearest;
    dladdr((void *)p.address, &nearest);
    if (form == "breakpad-functions" && nearest.dli_sname)
      printf("%2zu  %s!%s + 0x%lx\n", i, p.name(), shown(nearest.dli_sname).c_str(), p.address - (uintptr_t)nearest.dli_saddr);
    else
      printf("%2zu  %s + 0x%lx\n", i, p.name(), p.address - p.base);
    printf("    rbp = 0x%016lx   rsp = 0x%016lx\n    Found by: %s\n", p.address, p.base,
           i ? "call frame info" : "given as instruction pointer in context");
    modules.emplace(p.base, p);
  }
  printf("\nLoaded modules:\n");
  for (auto &[base, p] : modules)
    printf("0x%08lx - 0x%08lx  %s  ???%s  (WARNING: No symbols, %s, %s)\n", base, p.end - 1, p.name(),
           p.path == own_path() ? "  (main)" : "", p.name(), debug_id(p.id).c_str());
}

// exported returns the name of the exported function at the address of p, demangled; "" if there is none.
static std::string exported(const Place &p) {
  Dl_info nearest;
  dladdr((void *)p.address, &nearest);
  return shown(nearest.dli_sname);
}

int main(int argc, char **argv);

static void print_haproxy(const Place &p) {
  printf(" | %#14lx [", p.address);
  for (int i = 0; i < 8; i++)
    printf("%s%02x", i ? " " : "", ((const unsigned char *)p.address)[i]);
  printf("]: ");
  Dl_info nearest;
  const ElfW(Sym) *symbol = 0;
  dladdr1((void *)p.address, &nearest, (void **)&symbol, RTLD_DL_SYMENT);
  std::string name = p.name();
  bool program = p.path == own_path();
  if (!program)
    printf("%s:", name.substr(0, name.find('.')).c_str());
  if (nearest.dli_sname)
    printf("%s+0x%lx/0x%lx\n", nearest.dli_sname, p.address - (uintptr_t)nearest.dli_saddr, (unsigned long)symbol->st_size);
  else if (!program)
    printf("+0x%lx\n", p.address - p.base);
  else if (p.address < (uintptr_t)main)
    printf("main-0x%lx\n", (uintptr_t)main - p.address);
  else
    printf("main+0x%lx\n", p.address - (uintptr_t)main);
}

static void print_bpf(const Place &p) {
  Dl_info nearest;
  dladdr((void *)p.address, &nearest);
  std::string name = shown(nearest.dli_sname);
  unsigned long offset = p.address - (uintptr_t)nearest.dli_saddr;
  if (form == "bcc" && !name.empty())
    printf("\t\t0x%016lx\t%s+0x%lx [%s]\n", p.address, name.c_str(), offset, p.name());
  else if (form == "bcc")
    printf("\t\t0x%016lx\t[unknown] [%s]\n", p.address, p.name());
  else if (!name.empty())
    printf("        %lx %s+%lu (%s)\n", p.address, name.c_str(), offset, p.path.c_str());
  else
    printf("        %lx 0x%lx ([unknown])\n", p.address, p.address);
}

// print_abrt prints what satyr writes to core_backtrace, with a member on each line or all on one.
static void print_abrt(const std::vector<Place> &stack) {
  const char *end = form == "abrt" ? "\n" : " ";
  printf("{   \"signal\": 11%s,   \"executable\": \"%s\"%s,   \"stacktrace\":%s[ {   \"crash_thread\": true%s,   \"frames\":%s[ ",
         end, own_path().c_str(), end, end, end, end);
  for (size_t i = 0; i < stack.size(); i++) {
    const Place &p = stack[i];
    printf("%s{   \"address\": %lu%s,   \"build_id\": \"%s\"%s,   \"build_id_offset\": %lu%s", i ? ", " : "", p.address, end,
           p.id.c_str(), end, p.address - p.base, end);
    if (!exported(p).empty())
      printf(",   \"function_name\": \"%s\"%s", exported(p).c_str(), end);
    printf(",   \"file_name\": \"%s\"%s}%s", p.path.c_str(), end, end);
  }
  printf("]%s} ]%s}\n", end, end);
}

static void print_frame(int i, const Place &p) {
  // of a return address, most producers print an address within the call
  uintptr_t within = p.address - (i > 0 && !p.exact);
  const char *app = "/data/app/~~a==/com.example.shop-b==/base.apk";
  if (form == "android")
    printf("      #%02d pc %016lx  %s!%s (BuildId: %s)\n", i, within - p.bias, app, p.name(), p.id.c_str());
  else if (form == "android-10")
    printf("      #%02d pc %016lx  %s!%s (BuildId: %s)\n", i, within - p.map + p.offset, app, p.name(), p.id.c_str());
  else if (form == "android-9")
    printf("    #%02d pc %016lx  /data/app/shop/lib/x86_64/%s\n", i, within - p.map, p.name());
  else if (form == "chromium")
    printf("#%d 0x%012lx (%s+0x%lx)\n", i, p.address, p.path.c_str(), p.address - 1 - p.bias);
  else if (form == "firefox")
    printf("#%02d: ???[%s +0x%lx]\n", i + 1, p.path.c_str(), p.address - p.base);
  else if (form == "llvm")
    printf("%*s#%d 0x%016lx (%s+0x%lx)\n", i < 10, "", i, p.address, p.path.c_str(), p.address - p.bias);
  else if (form == "haproxy")
    print_haproxy(p);
  else if (form == "bpftrace" || form == "bcc")
    print_bpf(p);
  else if (form == "cuda")
    printf("=========     Host Frame:%s [0x%lx]\n=========                in %s\n", exported(p).c_str(), p.address - p.base, p.path.c_str());
  else if (form == "cuda-line")
    printf("=========         Host Frame: %s%s[0x%lx] in %s\n", exported(p).c_str(), exported(p).empty() ? "" : " ", p.address - p.base, p.name());
  else if (form == "coredump-243")
    printf("#%-2d 0x%016lx %s (%s)\n", i, p.address, exported(p).empty() ? "n/a" : exported(p).c_str(), p.name());
  else if (form == "node") {
    Dl_info nearest;
    dladdr((void *)p.address, &nearest);
    printf("%2d: 0x%lx %s [%s]\n", i + 1, p.address, shown(nearest.dli_sname).c_str(), p.path.c_str());
  }
}

// first_is_exact reports whether the first frame is the place of a fault.
static bool first_is_exact() {
  for (const char *program : {"android", "breakpad", "bpftrace", "bcc", "abrt", "coredump"})
    if (form.rfind(program, 0) == 0)
      return true;
  return false;
}

static void print() {
  void *stack[64];
  int n = backtrace(stack, 64); // line: print
  static const unsigned char trampoline[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  bool after_signal = false;
  std::vector<Place> places;
  if (form == "coredump-243")
    printf("    Executable: %s\nStack trace of thread %d:\n", own_path().c_str(), getpid());
  for (int i = 0; i < n; i++) {
    Place p{(uintptr_t)stack[i]};
    if (i == 0 && first_is_exact())
      p.address--; // of an instruction of the line
    dl_iterate_phdr(find, &p);
    p.exact = after_signal;
    after_signal = !memcmp(stack[i], trampoline, sizeof trampoline);
    print_frame(i, p);
    places.push_back(p);
  }
  if (form.rfind("breakpad", 0) == 0)
    print_breakpad(places);
  if (form.rfind("abrt", 0) == 0)
    print_abrt(places);
  fflush(stdout);
}

static void on_fault(int) {
  print(); // line: handler
  _exit(1);
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  form = argv[1];
  bool dies = argc > 2 && !strcmp(argv[2], "signal");
  if (dies)
    signal(SIGSEGV, on_fault);
  int sum = inventory_run(dies ? dying_leaf : leaf, 16); // line: main
  return sum & 1;
}
