#define CAT2(a, b) a##b
#define CAT(a, b) CAT2(a, b)

#ifdef __cplusplus
template <class T> inline T square(T x) { return x * x; }
extern "C"
#endif
int plain(int);
