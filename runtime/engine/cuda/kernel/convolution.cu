// What a weights' gradient that was divided among blocks is put together by.

struct parts {
  float *out;     // [n]
  const float *x; // [parts][n]
  wide n;
  int count, unused;
};

// sum_parts adds up what the blocks of a weights' gradient have summed, in their order.
KERNEL(sum_parts, parts) {
  PHASE(t) {
    wide i = (wide)blockIdx.x * THREADS + t;
    if (i < a.n) {
      float sum = 0;
      UNROLL_SOME
      for (int p = 0; p < a.count; p++) sum += a.x[p * a.n + i];
      a.out[i] = sum;
    }
  }
}
