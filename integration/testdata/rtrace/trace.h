// A tracer that writes what its own program allocates as sp-rtrace does: the
// text protocol on standard output.
#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define ALWAYS static inline __attribute__((always_inline))

static int trace_index, trace_context, trace_depth = 64;

// What is mapped as code; again when a library was loaded.
static NOINLINE void trace_maps(void) {
	char line[4096];
	FILE *maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof line, maps)) {
		unsigned long from, to;
		char mode[8];
		int path = 0;
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %n", &from, &to, mode, &path) == 3 && mode[2] == 'x' && line[path] > '\n')
			printf(": %.*s => 0x%lx-0x%lx\n", (int)strcspn(line + path, "\n"), line + path, from, to);
	}
	fclose(maps);
}

static NOINLINE void trace_begin(const char *name) {
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	void *frames[2];
	backtrace(frames, 2); // loads libgcc_s
	printf("version=2.0, arch=x86_64, timestamp=2011.6.16 15:49:48, process=%s, pid=%d, backtrace depth=%d, origin=self 1.0, \n", name, getpid(), trace_depth);
	printf("<1> : memory (memory in heap)\n<2> : segment (shared memory segment) [refcount]\n@ 1 : loading\n@ 2 : running (twice)\n");
	trace_maps();
}

static NOINLINE void trace_frames(int skip) {
	void *frames[128];
	int n = backtrace(frames, 128);
	for (int i = skip; i < n && i < skip + trace_depth; i++)
		printf("\t0x%lx\n", (unsigned long)(uintptr_t)frames[i]);
	printf("\n");
}

static void trace_line(void) {
	printf("%d. ", ++trace_index);
	if (trace_context)
		printf("@%x ", trace_context);
	printf("[%02d:%02d:%02d.%03d] ", 14, 54, trace_index / 1000 % 60, trace_index % 1000);
}

// The first frame is the caller's.
static NOINLINE void *trace_alloc(size_t size) {
	void *p = malloc(size);
	trace_line();
	printf("malloc<memory>(%zu) = 0x%lx\n", size, (unsigned long)(uintptr_t)p);
	trace_frames(2);
	return p;
}

static NOINLINE void trace_free(void *p) {
	trace_line();
	printf("free<memory>(0x%lx)\n", (unsigned long)(uintptr_t)p);
	trace_frames(2);
	free(p);
}

static NOINLINE void trace_attach(unsigned long id, size_t size, const char *key) {
	trace_line();
	printf("shmat<segment>(%zu) = 0x%lx\n\t$shmid = %s\n\t$addr = 0x%lx\n", size, id, key, id);
	trace_frames(2);
}

static NOINLINE void trace_detach(unsigned long id) {
	trace_line();
	printf("shmdt<segment>(0x%lx)\n\n", id);
}
