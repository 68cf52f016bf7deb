/* Variables of every shape that C has. */
#include <stddef.h>
#include <stdint.h>

typedef struct entry {
	char name[14];
	uint16_t kind; /* 0xe */
	struct { int x, y; } at;
	union {
		struct { int8_t low; int32_t high; };
		int64_t whole;
		double real;
	};
	struct entry *next;
	unsigned ready : 1, busy : 3, : 4, count : 20;
	int refs;
} entry;

entry table[8] = {{.refs = 1}};
static entry hidden[2] = {{.refs = 2}};
const volatile entry fixed = {.refs = 3};
int cube[2][3][4];
static const char *const words[] = {"a", "b", "c"};
const unsigned char blob[1000] = {1};
char wide[256] = {1};
int scalar = 4;
long pair[2];

struct tail {
	int n;
	short values[];
} flexible = {3, {1, 2, 3}};

struct none {
	int n;
	int zero[0];
	int last;
} zero_length = {1, {}, 2};

union number { int i; float f; struct { char a; short b; } s; } numbers[3];

struct __attribute__((packed)) tight { char c; int i; short s; } tight[2];

struct bits { uint64_t a : 3, b : 61; int c : 31; unsigned d : 1; char e : 7, f : 2; } bits[2];

struct outer { char pad; struct { struct { char deep[3]; }; long after; } in[2]; enum { RED, GREEN } colour; int (*call)(int); } outer;

typedef int row[4];
typedef const row matrix[5];
matrix rows = {{1}};
typedef float vec __attribute__((vector_size(16)));
struct { char tag; vec v; } vector;
_Bool flag;
_Complex double complex_value[2];

int *counter(void)
{
	static int count[4] = {1};
	static entry in_function;
	in_function.refs++;
	return &count[scalar & 3];
}

int main(void)
{
	return *counter() + hidden[scalar & 1].refs + (words[scalar & 1] != NULL);
}
