// A program that runs others: the children between fork and exec leave a report without an end, unless
// Valgrind traces them.
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>

int main(void) {
  if (system("exit 0") != 0)
    return 1;
  if (fork() == 0)
    execl("/bin/sh", "sh", "-c", "exit 0", (char *)NULL);
  wait(NULL);
  if (fork() == 0)
    _exit(0);
  wait(NULL);
  return 0;
}
