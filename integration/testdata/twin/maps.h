// Prints the mappings of the process, as programs do whose backtraces have bare addresses.
#pragma once
#include <stdio.h>

static inline void print_maps() {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[4096];
  while (maps && fgets(line, sizeof line, maps))
    fputs(line, stderr);
  if (maps)
    fclose(maps);
}
