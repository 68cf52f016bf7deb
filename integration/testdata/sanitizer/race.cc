// Two threads write the same memory, in an inlined call.
#include <pthread.h>
#include <stdlib.h>

static int first_is_done;

struct Account {
  long sum;
  inline void add(long n) { sum += n; }
};

static void *deposit(void *account) {
  static_cast<Account *>(account)->add(3);
  __atomic_store_n(&first_is_done, 1, __ATOMIC_RELAXED);
  return nullptr;
}

// The first thread has written when the second is made, but nothing orders the two for the
// sanitizer: a relaxed store orders no other memory.
int main() {
  Account *account = static_cast<Account *>(malloc(sizeof(Account)));
  pthread_t a, b;
  pthread_create(&a, nullptr, deposit, account);
  while (!__atomic_load_n(&first_is_done, __ATOMIC_RELAXED)) {
  }
  pthread_create(&b, nullptr, deposit, account);
  pthread_join(a, nullptr);
  pthread_join(b, nullptr);
  return 0;
}
