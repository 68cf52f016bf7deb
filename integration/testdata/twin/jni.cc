// Starts a Java virtual machine, whose library is the first argument, with the options after it,
// replaces the method Thread.yield, and calls it: the function in its place dies.
//
// jni.h is only in the development kit, so the functions are called by their places in the table of
// the Java Native Interface.
#include "inventory.h"
#include <dlfcn.h>
#include <stdio.h>

struct Option { const char *text; void *extra; };
struct Arguments { int version, count; Option *options; unsigned char ignore; };
struct Method { const char *name, *signature; void *function; };

enum { FindClass = 6, GetStaticMethodID = 113, CallStaticVoidMethod = 141, RegisterNatives = 215 };

static int leaf(int account) {
  int sum = fall(account); // line: leaf
  return sum + 1;
}

static void yield(void *, void *) {
  int sum = inventory_run(leaf, 16); // line: call
  printf("%d\n", sum);
}

__attribute__((noinline)) static int start(void **env) {
  void **table = (void **)*env;
  void *thread = ((void *(*)(void **, const char *))table[FindClass])(env, "java/lang/Thread");
  Method method = {"yield", "()V", (void *)yield};
  ((int (*)(void **, void *, Method *, int))table[RegisterNatives])(env, thread, &method, 1);
  void *id = ((void *(*)(void **, void *, const char *, const char *))table[GetStaticMethodID])(env, thread, "yield", "()V");
  ((void (*)(void **, void *, void *, ...))table[CallStaticVoidMethod])(env, thread, id); // line: start
  return id != nullptr;
}

int main(int argc, char **argv) {
  void *machine = dlopen(argv[1], RTLD_NOW);
  auto create = (int (*)(void **, void ***, void *))dlsym(machine, "JNI_CreateJavaVM");
  Option options[8] = {};
  Arguments arguments = {0x00010008, 0, options, 0};
  for (int i = 2; i < argc && i < 10; i++)
    options[arguments.count++].text = argv[i];
  void *vm, **env;
  if (create(&vm, &env, &arguments))
    return 2;
  int sum = start(env); // line: main
  return sum & 1;
}
