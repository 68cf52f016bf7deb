// A pool of T in one mapping of its own: freeing the pool unmaps it, so that a later use faults.
#pragma once
#include <stddef.h>
#include <sys/mman.h>

#include "crashlog.h"

template <typename T, size_t N>
class Pool {
 public:
  static Pool *create() {
    void *p = mmap(nullptr, sizeof(Pool), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? nullptr : static_cast<Pool *>(p);
  }

  // Keeps the stack of the caller: crashlog names it when the memory is used afterwards.
  static void destroy(Pool *p) {
    crashlog::freed(p, sizeof(Pool));
    munmap(p, sizeof(Pool));
  }

  T *add() {
    for (Slot &slot : slots_) {
      if (slot.used) continue;
      slot.used = true;
      return &slot.value;
    }
    return nullptr;
  }

  // The first used slot from index i on; nullptr behind the last one.
  const T *next(size_t i) const {
    while (i < N && !slots_[i].used) i++;
    return i < N ? &slots_[i].value : nullptr;
  }

  size_t index(const T *value) const { return reinterpret_cast<const Slot *>(value) - slots_; }

 private:
  struct Slot {
    T value;
    bool used;
  };
  Slot slots_[N];
};
