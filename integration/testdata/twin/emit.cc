// Prints its stack as programs do that are not in Debian: "emit FORM [signal]". With "signal", from
// the handler of a fault. The addresses are those of the process, each prepared as the program with
// this form does.
#include "inventory.h"
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <string>
#include <unistd.h>

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
  else if (form == "node") {
    Dl_info nearest;
    dladdr((void *)p.address, &nearest);
    int status;
    char *shown = nearest.dli_sname ? abi::__cxa_demangle(nearest.dli_sname, 0, 0, &status) : 0;
    const char *symbol = shown ? shown : nearest.dli_sname ? nearest.dli_sname : "";
    printf("%2d: 0x%lx %s [%s]\n", i + 1, p.address, symbol, p.path.c_str());
  }
}

// first_is_exact reports whether the first frame is the place of a fault.
static bool first_is_exact() { return form.rfind("android", 0) == 0; }

static void print() {
  void *stack[64];
  int n = backtrace(stack, 64); // line: print
  static const unsigned char trampoline[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  bool after_signal = false;
  for (int i = 0; i < n; i++) {
    Place p{(uintptr_t)stack[i]};
    if (i == 0 && first_is_exact())
      p.address--; // of an instruction of the line
    dl_iterate_phdr(find, &p);
    p.exact = after_signal;
    after_signal = !memcmp(stack[i], trampoline, sizeof trampoline);
    print_frame(i, p);
  }
  fflush(stdout);
}

static void on_fault(int) {
  print(); // line: handler
  _exit(1);
}

static int leaf(int account) {
  print(); // line: leaf
  return account;
}

static int dying_leaf(int account) {
  int sum = fall(account); // line: dying-leaf
  return sum + 1;
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
