// Products with blocks of ROWS rows and COLUMNS columns, of float32 (plain.cuh) or by a device's matrix units (matrix.cuh), which
// say how a thread's values lie in the block: value e of thread t is at row ROW_OF(t, e) and column COLUMN_OF(t, e). What is
// multiplied goes through ROUND. PAD keeps threads that read side by side off each other's banks.

// Forward: rows are filters of a group, columns the output's pixels and lanes, the sum goes over channels and taps.
KERNEL(VARIANT(convolution_forward), convolution) {
  SHARED float left[DEPTH][ROWS + PAD], right[DEPTH][COLUMNS + PAD];
  OWN(float, sum, VALUES);
  FRAGMENTS
  OWN(int, place, 3); // of the thread's column: the image's row and column at the first tap, and the lane
  int inner = a.channels / a.groups, outer = a.filters / a.groups, taps = a.kernel_h * a.kernel_w, depth = inner * taps;
  int group = blockIdx.z, row = blockIdx.y * ROWS;
  wide column = (wide)blockIdx.x * COLUMNS, columns = (wide)a.out_h * a.out_w * a.lanes;
  PHASE(t) {
    for (int e = 0; e < VALUES; e++) MINE(sum, t)[e] = 0;
    wide j = column + t % COLUMNS;
    int px = j / a.lanes;
    MINE(place, t)[0] = px / a.out_w * a.stride_h - a.top;
    MINE(place, t)[1] = px % a.out_w * a.stride_w - a.left;
    MINE(place, t)[2] = j < columns ? (int)(j % a.lanes) : -1;
  }
  for (int k = 0; k < depth; k += DEPTH) {
    PHASE(t) {
      for (int i = t / DEPTH; i < ROWS; i += THREADS / DEPTH) {
        int d = t % DEPTH;
        float v = row + i < outer && k + d < depth ? a.weights[(wide)(group * outer + row + i) * depth + k + d] : 0;
        left[d][i] = ROUND(v);
      }
      for (int d = t / COLUMNS; d < DEPTH; d += THREADS / COLUMNS) {
        int c = (k + d) / taps, tap = (k + d) % taps;
        int h = MINE(place, t)[0] + tap / a.kernel_w * a.dilation_h, w = MINE(place, t)[1] + tap % a.kernel_w * a.dilation_w;
        int lane = MINE(place, t)[2];
        float v = 0;
        if (lane >= 0 && c < inner && h >= 0 && h < a.height && w >= 0 && w < a.width) {
          v = a.x[((wide)(h * a.width + w) * a.channels + group * inner + c) * a.lanes + lane];
        }
        right[d][t % COLUMNS] = ROUND(v);
      }
    }
    MULTIPLY
  }
  PHASE(t) {
    UNROLL
    for (int e = 0; e < VALUES; e++) {
      int f = row + ROW_OF(t, e);
      wide at = column + COLUMN_OF(t, e);
      if (f < outer && at < columns) {
        float v = MINE(sum, t)[e] + (a.bias ? a.bias[group * outer + f] : 0);
        a.out[(at / a.lanes * a.filters + group * outer + f) * a.lanes + at % a.lanes] = a.relu && v < 0 ? 0 : v;
      }
    }
  }
}

// By the data: rows are channels of a group, columns the image's pixels and lanes, the sum goes over filters and taps. A tap that
// no stride leads to is zero, so that a stride of 2 costs four times what it need.
KERNEL(VARIANT(convolution_data), convolution) {
  SHARED float left[DEPTH][ROWS + PAD], right[DEPTH][COLUMNS + PAD];
  OWN(float, sum, VALUES);
  FRAGMENTS
  OWN(int, place, 3);
  int inner = a.channels / a.groups, outer = a.filters / a.groups, taps = a.kernel_h * a.kernel_w, depth = outer * taps;
  int group = blockIdx.z, row = blockIdx.y * ROWS;
  wide column = (wide)blockIdx.x * COLUMNS, columns = (wide)a.height * a.width * a.lanes;
  PHASE(t) {
    for (int e = 0; e < VALUES; e++) MINE(sum, t)[e] = 0;
    wide j = column + t % COLUMNS;
    int px = j / a.lanes;
    MINE(place, t)[0] = px / a.width + a.top;
    MINE(place, t)[1] = px % a.width + a.left;
    MINE(place, t)[2] = j < columns ? (int)(j % a.lanes) : -1;
  }
  for (int k = 0; k < depth; k += DEPTH) {
    PHASE(t) {
      for (int i = t / DEPTH; i < ROWS; i += THREADS / DEPTH) {
        int d = t % DEPTH, f = (k + d) / taps, tap = (k + d) % taps;
        float v = 0;
        if (row + i < inner && f < outer) v = a.weights[((wide)(group * outer + f) * inner + row + i) * taps + tap];
        left[d][i] = ROUND(v);
      }
      for (int d = t / COLUMNS; d < DEPTH; d += THREADS / COLUMNS) {
        int f = (k + d) / taps, tap = (k + d) % taps;
        int h = MINE(place, t)[0] - tap / a.kernel_w * a.dilation_h, w = MINE(place, t)[1] - tap % a.kernel_w * a.dilation_w;
        int lane = MINE(place, t)[2];
        float v = 0;
        if (lane >= 0 && f < outer && h >= 0 && w >= 0 && h % a.stride_h == 0 && w % a.stride_w == 0 &&
            h / a.stride_h < a.out_h && w / a.stride_w < a.out_w) {
          wide px = h / a.stride_h * a.out_w + w / a.stride_w;
          v = a.x[(px * a.filters + group * outer + f) * a.lanes + lane];
        }
        right[d][t % COLUMNS] = ROUND(v);
      }
    }
    MULTIPLY
  }
  PHASE(t) {
    UNROLL
    for (int e = 0; e < VALUES; e++) {
      int c = row + ROW_OF(t, e);
      wide at = column + COLUMN_OF(t, e);
      if (c < inner && at < columns) {
        float *out = a.out + (at / a.lanes * a.channels + group * inner + c) * a.lanes + at % a.lanes;
        float v = MINE(sum, t)[e];
        *out = a.add ? *out + v : v;
      }
    }
  }
}

// By the weights: rows are filters of a group, columns channels and taps, the sum goes over the output's pixels and the rows of
// the batch, DEPTH lanes of a pixel at a time. Lanes are a multiple of DEPTH.
KERNEL(VARIANT(convolution_weights), convolution) {
  SHARED float left[DEPTH][ROWS + PAD], right[DEPTH][COLUMNS + PAD];
  OWN(float, sum, VALUES);
  FRAGMENTS
  OWN(int, place, 3 * PER_COLUMN); // of each of the thread's columns: channel, row and column of the tap
  int inner = a.channels / a.groups, outer = a.filters / a.groups, taps = a.kernel_h * a.kernel_w, columns = inner * taps;
  int group = blockIdx.z / a.parts, part = blockIdx.z % a.parts, row = blockIdx.y * ROWS, column = blockIdx.x * COLUMNS;
  int runs = a.lanes / DEPTH, rows = a.control->rows;
  wide all = (wide)a.out_h * a.out_w * runs, first = all * part / a.parts, last = all * (part + 1) / a.parts;
  PHASE(t) {
    for (int e = 0; e < VALUES; e++) MINE(sum, t)[e] = 0;
    for (int j = 0; j < PER_COLUMN; j++) {
      int m = column + t / DEPTH + THREADS / DEPTH * j;
      MINE(place, t)[3 * j] = m < columns ? group * inner + m / taps : -1;
      MINE(place, t)[3 * j + 1] = m % taps / a.kernel_w * a.dilation_h - a.top;
      MINE(place, t)[3 * j + 2] = m % taps % a.kernel_w * a.dilation_w - a.left;
    }
  }
  for (wide k = first; k < last; k++) {
    int px = k / runs, lane = k % runs * DEPTH;
    int h = px / a.out_w * a.stride_h, w = px % a.out_w * a.stride_w;
    PHASE(t) {
      int d = t % DEPTH, used = lane + d < rows;
      for (int i = t / DEPTH; i < ROWS; i += THREADS / DEPTH) {
        float v = 0;
        if (used && row + i < outer) v = a.weights[((wide)px * a.filters + group * outer + row + i) * a.lanes + lane + d];
        left[d][i] = ROUND(v);
      }
      UNROLL
      for (int j = 0; j < PER_COLUMN; j++) {
        int c = MINE(place, t)[3 * j], y = h + MINE(place, t)[3 * j + 1], x = w + MINE(place, t)[3 * j + 2];
        float v = 0;
        if (used && c >= 0 && y >= 0 && y < a.height && x >= 0 && x < a.width) {
          v = a.x[((wide)(y * a.width + x) * a.channels + c) * a.lanes + lane + d];
        }
        right[d][t / DEPTH + THREADS / DEPTH * j] = ROUND(v);
      }
    }
    MULTIPLY
  }
  PHASE(t) {
    float *out = a.out + (wide)part * a.filters * columns;
    UNROLL
    for (int e = 0; e < VALUES; e++) {
      int f = row + ROW_OF(t, e), m = column + COLUMN_OF(t, e);
      if (f < outer && m < columns) out[(wide)(group * outer + f) * columns + m] = MINE(sum, t)[e];
    }
  }
}
