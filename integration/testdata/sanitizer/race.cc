// Two threads write the same memory, in an inlined call.
#include <pthread.h>
#include <stdlib.h>

static int done;

struct Account {
  long sum;
  inline void add(long n) { sum += n; }
};

static void *deposit(void *account) {
  static_cast<Account *>(account)->add(3);
  __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
  while (__atomic_load_n(&done, __ATOMIC_RELAXED) < 2) {
    sched_yield();
  }
  return nullptr;
}

// The first thread has written when the second is made, but nothing orders the two for the
// sanitizer: a relaxed addition orders no other memory. Both threads run until both have written,
// since reports say whether a thread is running.
int main() {
  Account *account = static_cast<Account *>(malloc(sizeof(Account)));
  pthread_t a, b;
  pthread_create(&a, nullptr, deposit, account);
  while (__atomic_load_n(&done, __ATOMIC_RELAXED) == 0) {
  }
  pthread_create(&b, nullptr, deposit, account);
  pthread_join(a, nullptr);
  pthread_join(b, nullptr);
  return 0;
}
