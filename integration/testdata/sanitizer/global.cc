// Two threads write a member of a variable.
#include <pthread.h>

static int done;

namespace inventory {
struct Account {
  long number;
  long sum;
};
Account accounts[3];
} // namespace inventory

static void *deposit(void *) {
  inventory::accounts[1].sum += 3;
  __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
  while (__atomic_load_n(&done, __ATOMIC_RELAXED) < 2) {
    sched_yield();
  }
  return nullptr;
}

// As in race.cc, nothing orders the two writes for the sanitizer, and both threads run until both
// have written.
int main() {
  pthread_t a, b;
  pthread_create(&a, nullptr, deposit, nullptr);
  while (__atomic_load_n(&done, __ATOMIC_RELAXED) == 0) {
  }
  pthread_create(&b, nullptr, deposit, nullptr);
  pthread_join(a, nullptr);
  pthread_join(b, nullptr);
  return 0;
}
