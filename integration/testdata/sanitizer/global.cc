// Two threads write a member of a variable.
#include <pthread.h>

static int first_is_done;

namespace inventory {
struct Account {
  long number;
  long sum;
};
Account accounts[3];
} // namespace inventory

static void *deposit(void *) {
  inventory::accounts[1].sum += 3;
  __atomic_store_n(&first_is_done, 1, __ATOMIC_RELAXED);
  return nullptr;
}

// As in race.cc, nothing orders the two writes for the sanitizer.
int main() {
  pthread_t a, b;
  pthread_create(&a, nullptr, deposit, nullptr);
  while (!__atomic_load_n(&first_is_done, __ATOMIC_RELAXED)) {
  }
  pthread_create(&b, nullptr, deposit, nullptr);
  pthread_join(a, nullptr);
  pthread_join(b, nullptr);
  return 0;
}
