// An ATmega1280 of QEMU's machine arduino-mega: the console is USART0. The machine has no instruction
// that traps, and nothing that ends the simulation: the program prints where it was called from and stops.
#include "firmware.h"

int main(void);

#define REGISTER(address) (*(volatile uint8_t *)(address))

void put_char(char c) {
  REGISTER(0xc1) = 1 << 3;             // UCSR0B: transmit
  while (!(REGISTER(0xc0) & 1 << 5)) {} // UCSR0A: empty
  REGISTER(0xc6) = c;                  // UDR0
}

void power_off(void) {
  for (;;) __asm__ volatile("cli\n sleep");
}

static __attribute__((noinline)) void label(const char *s) { // a string in memory of data: crt0 has copied it
  while (*s) put_char(*s++);
}

static __attribute__((noinline)) void hex(uint32_t value, int8_t digits) {
  while (digits-- > 0) {
    uint8_t figure = value >> 4 * digits & 15;
    put_char(figure < 10 ? '0' + figure : 'a' + figure - 10);
  }
}

// abort is called for a trap. The return addresses on the stack count words of two bytes; avr-addr2line and the
// ELF file count bytes.
void abort(void) {
  uint16_t words = (uint16_t)__builtin_return_address(0);
  label("assertion failed, ra = 0x"), hex(words, 4), label("\r\nassertion failed, ra = 0x"), hex((uint32_t)words * 2, 8);
  label("\r\nLR = 0x"), hex(words, 4), label(" PC = 0x"), hex(words, 4), label("\r\n");
  power_off();
}
