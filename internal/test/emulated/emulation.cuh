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
#define STEP(t) PHASE(t)
#define BARRIER ((void)0)
#define OWN(type, name, n) type name[THREADS][n]
#define MINE(name, t) name[t]
#define UNROLL
#define UNROLL_SOME

static struct { int x, y, z; } blockIdx;
static int backwards;

static inline uint32_t as_bits(float v) {
  uint32_t b;
  memcpy(&b, &v, sizeof b);
  return b;
}

static inline float as_float(uint32_t b) {
  float v;
  memcpy(&v, &b, sizeof v);
  return v;
}

#define AS_BITS(v) as_bits(v)
#define AS_FLOAT(b) as_float(b)

static inline int turn(int i, int n) { return backwards ? n - 1 - i : i; }

// What a warp's matrix instruction does for one of its threads: it adds to the four values that the thread has of a tile of
// 16 x 8. Each lane brings a part of both sides, laid out as PTX's documentation has it for mma.m16n8k8 of TF32 and for
// mma.m16n8k16 of bfloat16, two values a word; a and b are those of the warp's first lane, a_step and b_step words on is
// the next one's. Products are exact in float; sums are rounded one after another, where a device rounds in ways of its own.
static inline void matrix(float *c, const uint32_t *a, size_t a_step, const uint32_t *b, size_t b_step, int lane, int halves) {
  int depth = halves ? 16 : 8, each = depth / 2, pairs = halves ? 2 : 1;
  for (int e = 0; e < 4; e++) {
    int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
    for (int k = 0; k < depth; k++) {
      uint32_t l = a[(row % 8 * 4 + k % each / pairs) * a_step + row / 8 + k / each * 2];
      uint32_t r = b[(column * 4 + k % each / pairs) * b_step + k / each];
      if (halves) l = k % 2 ? l & 0xffff0000u : l << 16, r = k % 2 ? r & 0xffff0000u : r << 16;
      else l &= 0xffffe000u, r &= 0xffffe000u; // what a device does not look at
      c[e] += as_float(l) * as_float(r);
    }
  }
}

#define MATRIX(t, s, i, j)                                                                                        \
  matrix(sum[t] + (s), &sides[(t) / 32 * 32][4 * (i)], sizeof sides[0] / 4, &others[(t) / 32 * 32][2 * (j)],      \
         sizeof others[0] / 4, (t) % 32, HALVES)
