// How a product is computed by matrix units: DOWN x (8 / DOWN) warps divide a block, each into DOWN x ACROSS tiles of 16 x 8. A
// thread has four values of each tile: two side by side, and two eight rows below. HALVES chooses bfloat16, of which a word has
// two, over TF32; both are rounded when they come into shared memory.

#define PAD 8
#define DOWN (ROWS > 16 ? 2 : 1)
#define ACROSS (2 * DOWN)
#define VALUES (4 * DOWN * ACROSS) // of a thread
#define FRAGMENTS OWN(unsigned, sides, 4 * DOWN); OWN(unsigned, others, 2 * ACROSS);
#define TILE_ROW(t) ((t) / 32 % DOWN * 16 * DOWN)
#define TILE_COLUMN(t) ((t) / 32 / DOWN * 8 * ACROSS)
#define ROW_OF(t, e) (TILE_ROW(t) + (e) / 4 / ACROSS * 16 + (t) % 32 / 4 + (e) / 2 % 2 * 8)
#define COLUMN_OF(t, e) (TILE_COLUMN(t) + (e) / 4 % ACROSS * 8 + (t) % 4 * 2 + (e) % 2)
#define ROUND(v) (HALVES ? bf16(v) : tf32(v))

// What a lane brings of both sides: word r of tile i, or j, at depth d.
#define SIDE(t, i, r, k) left[k][TILE_ROW(t) + 16 * (i) + (t) % 32 / 4 + (r) % 2 * 8]
#define OTHER(t, j, k) right[k][TILE_COLUMN(t) + 8 * (j) + (t) % 32 / 4]

#ifndef EMULATED
#define MATRIX_OF(form, c, a, b)                                                                                      \
  asm volatile("mma.sync.aligned." form ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"        \
               : "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3])                                               \
               : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]))
#define MATRIX(t, s, i, j)                                                                                  \
  if (HALVES) MATRIX_OF("m16n8k16.row.col.f32.bf16.bf16", sum + (s), sides + 4 * (i), others + 2 * (j));    \
  else MATRIX_OF("m16n8k8.row.col.f32.tf32.tf32", sum + (s), sides + 4 * (i), others + 2 * (j))
#endif

#define MULTIPLY                                                                                                       \
  UNROLL                                                                                                               \
  for (int d = 0; d < DEPTH; d += HALVES ? 16 : 8) {                                                                   \
    STEP(t) {                                                                                                          \
      int k = d + t % 4 * (HALVES ? 2 : 1);                                                                            \
      UNROLL                                                                                                           \
      for (int n = 0; n < 4 * DOWN; n++) {                                                                             \
        int r = n % 4, at = k + r / 2 * (HALVES ? 8 : 4);                                                              \
        MINE(sides, t)[n] = HALVES ? pair(SIDE(t, n / 4, r, at), SIDE(t, n / 4, r, at + HALVES))                       \
                                   : AS_BITS(SIDE(t, n / 4, r, at));                                                   \
      }                                                                                                                \
      UNROLL                                                                                                           \
      for (int n = 0; n < 2 * ACROSS; n++) {                                                                           \
        int at = k + n % 2 * (HALVES ? 8 : 4);                                                                         \
        MINE(others, t)[n] = HALVES ? pair(OTHER(t, n / 2, at), OTHER(t, n / 2, at + HALVES))                          \
                                    : AS_BITS(OTHER(t, n / 2, at));                                                    \
      }                                                                                                                \
    }                                                                                                                  \
    STEP(t) {                                                                                                          \
      UNROLL                                                                                                           \
      for (int n = 0; n < DOWN * ACROSS; n++) {                                                                        \
        MATRIX(t, 4 * n, n / ACROSS, n % ACROSS);                                                                      \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  BARRIER;
