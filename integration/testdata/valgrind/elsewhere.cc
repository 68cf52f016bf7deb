// A condition that is not initialised in a function of a template, and a leak in its constructor.
#include <cstdio>
#include <cstdlib>
namespace nn {
template <class T> struct Box {
    T *room;
    __attribute__((noinline)) Box() : room(static_cast<T *>(malloc(40))) {}
    __attribute__((noinline)) T get(T by) {
        if (room[by] > 3) puts("more");
        return by;
    }
};
}
int main() {
    nn::Box<int> box;
    int n = box.get(2);
    box.room = nullptr;
    return n - 2;
}
