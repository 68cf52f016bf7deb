// The program that crashes: calls, inlined calls, and an instruction that is not defined.
#include "firmware.h"

struct sensor {
  int id;
  volatile int value;
};

static inline __attribute__((always_inline)) int scale(struct sensor *s, int by) {
  if (s->value == by)
    __builtin_trap();
  return s->value * by;
}

static inline __attribute__((always_inline)) int calibrate(struct sensor *s) { return scale(s, 7) + 1; }

__attribute__((noinline)) int read_sensor(struct sensor *s) {
  s->value += s->id;
  return calibrate(s) + s->value;
}

__attribute__((noinline)) int poll_sensors(struct sensor *all, int n) {
  int sum = 0;
  for (int i = 0; i < n; i++)
    sum += read_sensor(&all[i]);
  return sum;
}

static struct sensor sensors[] = {{1, 1}, {2, 2}, {3, 4}};

int main(void) {
  int sum = poll_sensors(sensors, 3);
  return sum + 1;
}
