// How a product of float32 is computed: thread (y, x) of 16 x 16 has PER_ROW rows side by side and every 16th column.

#define PAD 1
#define VALUES (PER_ROW * PER_COLUMN) // of a thread
#define ROUND(v) (v)
#define FRAGMENTS
#define ROW_OF(t, e) ((t) / 16 * PER_ROW + (e) / PER_COLUMN)
#define COLUMN_OF(t, e) ((t) % 16 + 16 * ((e) % PER_COLUMN))

// MULTIPLY adds what DEPTH values of both sides come to.
#define MULTIPLY                                                                                         \
  PHASE(t) {                                                                                             \
    UNROLL                                                                                               \
    for (int d = 0; d < DEPTH; d++) {                                                                    \
      float l[PER_ROW], r[PER_COLUMN];                                                                   \
      UNROLL                                                                                             \
      for (int i = 0; i < PER_ROW; i++) l[i] = left[d][t / 16 * PER_ROW + i];                            \
      UNROLL                                                                                             \
      for (int j = 0; j < PER_COLUMN; j++) r[j] = right[d][t % 16 + 16 * j];                             \
      UNROLL                                                                                             \
      for (int i = 0; i < PER_ROW; i++) {                                                                \
        UNROLL                                                                                           \
        for (int j = 0; j < PER_COLUMN; j++) MINE(sum, t)[i * PER_COLUMN + j] += l[i] * r[j];            \
      }                                                                                                  \
    }                                                                                                    \
  }
