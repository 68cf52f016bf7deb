// Prints its own modules, maps and a backtrace as symbolizer markup.
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

// build_id prints the payload of the GNU build ID note among the notes at p; it returns whether there is one.
static int build_id(const char *p, const char *end) {
  while (p + sizeof(ElfW(Nhdr)) <= end) {
    const ElfW(Nhdr) *note = (const void *)p;
    const char *name = p + sizeof *note;
    const unsigned char *payload = (const void *)(name + ((note->n_namesz + 3) & ~3u));
    if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
      for (unsigned i = 0; i < note->n_descsz; i++)
        printf("%02x", payload[i]);
      return 1;
    }
    p = (const char *)payload + ((note->n_descsz + 3) & ~3u);
  }
  return 0;
}

static int print_module(struct dl_phdr_info *info, size_t size, void *next_id) {
  (void)size;
  int id = (*(int *)next_id)++;
  char self[4096] = "";
  const char *name = info->dlpi_name;
  if (name[0] == '\0') { // the program itself
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    name = self;
  }
  printf("{{{module:%d:%s:elf:", id, name);
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
    const char *notes = (const char *)(info->dlpi_addr + ph->p_vaddr);
    if (ph->p_type == PT_NOTE && build_id(notes, notes + ph->p_memsz))
      break;
  }
  printf("}}}\n");
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
    if (ph->p_type == PT_LOAD)
      printf("{{{mmap:0x%016zx:%#zx:load:%d:%s%s%s:0x%016zx}}}\n", (size_t)(info->dlpi_addr + ph->p_vaddr), (size_t)ph->p_memsz, id,
             ph->p_flags & PF_R ? "r" : "", ph->p_flags & PF_W ? "w" : "", ph->p_flags & PF_X ? "x" : "", (size_t)ph->p_vaddr);
  }
  return 0;
}

static _Unwind_Reason_Code print_frame(struct _Unwind_Context *context, void *next_frame) {
  int precise = 0; // the frame was interrupted by a signal: its address is that of the instruction
  size_t address = _Unwind_GetIPInfo(context, &precise);
  if (address)
    printf("{{{bt:%d:0x%016zx:%s}}}\n", (*(int *)next_frame)++, address, precise ? "pc" : "ra");
  return _URC_NO_REASON;
}

void print_backtrace(void) {
  int id = 0, frame = 0;
  printf("{{{reset}}}\n");
  dl_iterate_phdr(print_module, &id);
  _Unwind_Backtrace(print_frame, &frame);
}

static inline __attribute__((always_inline)) void inlined(void) { print_backtrace(); }
__attribute__((noinline)) void work(void) {
  inlined();
  puts("done"); // what is called last may have no frame of its own
}

int main(void) {
  work();
  return 0;
}
