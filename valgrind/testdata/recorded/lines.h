// What the program lines uses of liblines.so.
struct operations {
	int (*read)(const char *p);
	int (*inlined)(const char *p);
	int (*again)(int depth, const char *p);
};
const struct operations *operations(void);
