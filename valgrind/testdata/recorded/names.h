// What the program names uses of libnames.so and libsignals.so.
namespace names {
int leaf(const char *p, int i);
int sum(const int *from, const int *to);
void handle(int signal, void (*handler)(int));
char *start();
}
