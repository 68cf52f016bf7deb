// Makes the errors that Valgrind reports: with "memory" reads of freed and of uninitialised memory and
// a lost block, with "race" two threads that write without a lock, with "signal" a fault whose handler
// makes an error.
#include "inventory.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int total;

static int freed(int account) {
  volatile int *p = (volatile int *)malloc(16);
  free((void *)p);
  int sum = p[2];
  return sum + account;
}

static int lost(int account) {
  volatile int *p = (volatile int *)malloc(24 + account % 2);
  int sum = 1;
  if (p[1] > 3)
    sum += account;
  return sum;
}

static int raced(int account) {
  total = total + account;
  return account;
}

static void *thread(void *account) {
  int sum = inventory_run(raced, *(int *)account);
  *(int *)account = sum;
  return nullptr;
}

static void on_fault(int) {
  volatile int *p = (volatile int *)malloc(16);
  if (p[1] > 3)
    _exit(2);
  _exit(1);
}

static int dying(int account) {
  int sum = fall(account);
  return sum + 1;
}

int main(int argc, char **argv) {
  int accounts[2] = {argc * 16, argc * 32};
  if (argc > 1 && !strcmp(argv[1], "race")) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
      pthread_create(&threads[i], nullptr, thread, &accounts[i]);
    for (int i = 0; i < 2; i++)
      pthread_join(threads[i], nullptr);
    return 0;
  }
  if (argc > 1 && !strcmp(argv[1], "signal")) {
    signal(SIGSEGV, on_fault);
    return inventory_run(dying, accounts[0]);
  }
  int sum = inventory_run(freed, accounts[0]);
  sum += inventory_run(lost, accounts[1]);
  return sum & 1;
}
