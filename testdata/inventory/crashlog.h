// libcrashlog.so: log lines, and a fatal signal printed as symbolizer markup by a program that carries no symbols.
#pragma once
#include <stddef.h>

namespace crashlog {

enum Level { kInfo, kWarn, kError };

// Installs the handler. watched is a variable whose address is shown in the report.
void install(const void *watched, const char *hook);

void line(Level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Remembers who freed [p, p+size).
void freed(const void *p, size_t size);

}  // namespace crashlog
