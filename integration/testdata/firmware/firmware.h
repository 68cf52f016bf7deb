// What the ports have to offer: a character on the console, the end of the simulation, and the handler
// of a fault, which gets the registers that the hardware or the port has saved.
#pragma once
#include <stdint.h>

void put_char(char c);
__attribute__((noreturn)) void power_off(void);

struct registers {
  uintptr_t pc, lr, sp;
};

// Defined by the port: begin and end of the code, and the end of the stack.
extern const char code_start[], code_end[];
extern uintptr_t stack_end[];

__attribute__((noreturn)) void fault(const struct registers *r);
