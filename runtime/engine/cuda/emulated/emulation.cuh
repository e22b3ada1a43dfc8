// Compiles kernels for the processor: blocks one after another, and in each the threads of a phase one after another. Backwards
// turns both orders round: what depends on an order that a device does not keep comes out another.
#define EMULATED
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KERNEL(name, type) KERNEL_OF(name, type)
#define KERNEL_OF(name, type)                   \
  static void name(const struct type);          \
  static void name##_launch(const void *args) { \
    struct type a;                              \
    memcpy(&a, args, sizeof a);                 \
    name(a);                                    \
  }                                             \
  enum { name##_size = sizeof(struct type) };   \
  static void name(const struct type a)
#define DEVICE static inline
#define SHARED
#define PHASE(t) for (int i_ = 0, t = turn(0, THREADS); i_ < THREADS; i_++, t = turn(i_, THREADS))
#define OWN(type, name, n) type name[THREADS][n]
#define MINE(name, t) name[t]
#define UNROLL
#define UNROLL_SOME

static struct { int x, y, z; } blockIdx;
static int backwards;

static inline int turn(int i, int n) { return backwards ? n - 1 - i : i; }
