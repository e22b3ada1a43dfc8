// Pools and depthwise convolutions: what goes by windows, channel by channel. Backward passes ask of every value of the input
// which windows it was in: nothing is added to what another thread may be adding to.

struct window {
  float *out;
  const float *x;       // the input
  const float *y;       // max pool backward: the output
  const float *dy;      // backward: the gradient of the output
  const float *weights; // depthwise: [channel][kernel height][kernel width]
  const float *bias;    // depthwise forward; may be null
  const struct control *control;
  int channels, height, width;
  int kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, top, left;
  int out_h, out_w, lanes;
  int count_pad;        // an average counts padding
  int add;              // to what is there
};

// within is how many taps of a window that starts at from are inside of size.
DEVICE int within(int from, int step, int taps, int size) {
  int n = 0;
  for (int r = 0; r < taps; r++) n += from + r * step >= 0 && from + r * step < size;
  return n;
}

// value is where the value of a pixel at i of [pixel][channel][lane] lies in an image of the same channels and lanes.
DEVICE wide value(const struct window *a, wide i, int h, int w, int width) {
  int each = a->channels * a->lanes;
  return (wide)(h * width + w) * each + i % each;
}

KERNEL(max_pool, window) {
  PHASE(t) {
    wide i = (wide)blockIdx.x * THREADS + t;
    int px = i / (a.channels * a.lanes), top = px / a.out_w * a.stride_h - a.top, left = px % a.out_w * a.stride_w - a.left;
    if (px < a.out_h * a.out_w) {
      float most = -INFINITE; // which it stays where a window meets nothing but padding
      for (int r = 0; r < a.kernel_h; r++) {
        for (int q = 0; q < a.kernel_w; q++) {
          int h = top + r * a.dilation_h, w = left + q * a.dilation_w;
          if (h >= 0 && h < a.height && w >= 0 && w < a.width) {
            float v = a.x[value(&a, i, h, w, a.width)];
            if (v > most || v != v) most = v;
          }
        }
      }
      a.out[i] = most;
    }
  }
}

// first tells that no tap of a window before (r, q) has the value of its output.
DEVICE int first(const struct window *a, wide i, int top, int left, int r, int q, float y) {
  for (int k = 0; k < r * a->kernel_w + q; k++) {
    int h = top + k / a->kernel_w * a->dilation_h, w = left + k % a->kernel_w * a->dilation_w;
    if (h >= 0 && h < a->height && w >= 0 && w < a->width && a->x[value(a, i, h, w, a->width)] == y) return 0;
  }
  return 1;
}

KERNEL(max_pool_back, window) {
  PHASE(t) {
    wide i = (wide)blockIdx.x * THREADS + t;
    int px = i / (a.channels * a.lanes);
    if (px < a.height * a.width) {
      float sum = 0, x = a.x[i];
      for (int r = 0; r < a.kernel_h; r++) {
        for (int q = 0; q < a.kernel_w; q++) {
          int top = px / a.width - r * a.dilation_h, left = px % a.width - q * a.dilation_w; // where the window begins
          int h = top + a.top, w = left + a.left;
          if (h >= 0 && h % a.stride_h == 0 && h / a.stride_h < a.out_h && w >= 0 && w % a.stride_w == 0 &&
              w / a.stride_w < a.out_w) {
            wide o = value(&a, i, h / a.stride_h, w / a.stride_w, a.out_w);
            if (a.y[o] == x && first(&a, i, top, left, r, q, x)) sum += a.dy[o];
          }
        }
      }
      a.out[i] = a.add ? a.out[i] + sum : sum;
    }
  }
}

DEVICE float share(const struct window *a, int top, int left) {
  if (a->count_pad) return 1.0f / (a->kernel_h * a->kernel_w);
  return 1.0f / (within(top, a->dilation_h, a->kernel_h, a->height) * within(left, a->dilation_w, a->kernel_w, a->width));
}

KERNEL(average_pool, window) {
  PHASE(t) {
    wide i = (wide)blockIdx.x * THREADS + t;
    int px = i / (a.channels * a.lanes), top = px / a.out_w * a.stride_h - a.top, left = px % a.out_w * a.stride_w - a.left;
    if (px < a.out_h * a.out_w) {
      float sum = 0;
      int met = 0;
      for (int r = 0; r < a.kernel_h; r++) {
        for (int q = 0; q < a.kernel_w; q++) {
          int h = top + r * a.dilation_h, w = left + q * a.dilation_w;
          if (h >= 0 && h < a.height && w >= 0 && w < a.width) {
            sum += a.x[value(&a, i, h, w, a.width)];
            met = 1;
          }
        }
      }
      a.out[i] = met ? sum * share(&a, top, left) : 0;
    }
  }
}

KERNEL(average_pool_back, window) {
  PHASE(t) {
    wide i = (wide)blockIdx.x * THREADS + t;
    int px = i / (a.channels * a.lanes);
    if (px < a.height * a.width) {
      float sum = 0;
      for (int r = 0; r < a.kernel_h; r++) {
        for (int q = 0; q < a.kernel_w; q++) {
          int top = px / a.width - r * a.dilation_h, left = px % a.width - q * a.dilation_w, h = top + a.top, w = left + a.left;
          if (h >= 0 && h % a.stride_h == 0 && h / a.stride_h < a.out_h && w >= 0 && w % a.stride_w == 0 &&
              w / a.stride_w < a.out_w) {
            sum += share(&a, top, left) * a.dy[value(&a, i, h / a.stride_h, w / a.stride_w, a.out_w)];
          }
        }
      }
      a.out[i] = a.add ? a.out[i] + sum : sum;
    }
  }
}

// An adaptive pool divides a side of size into n bins, which may overlap: bin b is from b size / n to (b+1) size / n, rounded up
// (PyTorch's rule). One bin is the whole side.
DEVICE int bin_from(int b, int n, int size) { return b * size / n; }
DEVICE int bin_to(int b, int n, int size) { return ((b + 1) * size + n - 1) / n; }

KERNEL(adaptive_pool, window) {
  PHASE(t) {
    wide i = (wide)blockIdx.x * THREADS + t;
    int px = i / (a.channels * a.lanes);
    if (px < a.out_h * a.out_w) {
      int h0 = bin_from(px / a.out_w, a.out_h, a.height), h1 = bin_to(px / a.out_w, a.out_h, a.height);
      int w0 = bin_from(px % a.out_w, a.out_w, a.width), w1 = bin_to(px % a.out_w, a.out_w, a.width);
      float sum = 0;
      for (int h = h0; h < h1; h++) {
        for (int w = w0; w < w1; w++) sum += a.x[value(&a, i, h, w, a.width)];
      }
      a.out[i] = sum / ((h1 - h0) * (w1 - w0));
    }
  }
}

KERNEL(adaptive_pool_back, window) {
  PHASE(t) {
    wide i = (wide)blockIdx.x * THREADS + t;
    int px = i / (a.channels * a.lanes), h = px / a.width, w = px % a.width;
    if (px < a.height * a.width) {
      float sum = 0;
      for (int p = 0; p < a.out_h; p++) {
        int h0 = bin_from(p, a.out_h, a.height), h1 = bin_to(p, a.out_h, a.height);
        for (int q = 0; q < a.out_w && h >= h0 && h < h1; q++) {
          int w0 = bin_from(q, a.out_w, a.width), w1 = bin_to(q, a.out_w, a.width);
          if (w >= w0 && w < w1) sum += a.dy[value(&a, i, p, q, a.out_w)] / ((h1 - h0) * (w1 - w0));
        }
      }
      a.out[i] = a.add ? a.out[i] + sum : sum;
    }
  }
}

KERNEL(depthwise_forward, window) {
  PHASE(t) {
    wide i = (wide)blockIdx.x * THREADS + t;
    int px = i / (a.channels * a.lanes), top = px / a.out_w * a.stride_h - a.top, left = px % a.out_w * a.stride_w - a.left;
    if (px < a.out_h * a.out_w) {
      int c = i / a.lanes % a.channels;
      float sum = 0;
      for (int r = 0; r < a.kernel_h; r++) {
        for (int q = 0; q < a.kernel_w; q++) {
          int h = top + r * a.dilation_h, w = left + q * a.dilation_w;
          if (h >= 0 && h < a.height && w >= 0 && w < a.width) {
            sum += a.weights[(c * a.kernel_h + r) * a.kernel_w + q] * a.x[value(&a, i, h, w, a.width)];
          }
        }
      }
      a.out[i] = a.bias ? sum + a.bias[c] : sum;
    }
  }
}

KERNEL(depthwise_data, window) {
  PHASE(t) {
    wide i = (wide)blockIdx.x * THREADS + t;
    int px = i / (a.channels * a.lanes);
    if (px < a.height * a.width) {
      int c = i / a.lanes % a.channels;
      float sum = 0;
      for (int r = 0; r < a.kernel_h; r++) {
        for (int q = 0; q < a.kernel_w; q++) {
          int h = px / a.width + a.top - r * a.dilation_h, w = px % a.width + a.left - q * a.dilation_w;
          if (h >= 0 && h % a.stride_h == 0 && h / a.stride_h < a.out_h && w >= 0 && w % a.stride_w == 0 &&
              w / a.stride_w < a.out_w) {
            sum += a.weights[(c * a.kernel_h + r) * a.kernel_w + q] *
                   a.dy[value(&a, i, h / a.stride_h, w / a.stride_w, a.out_w)];
          }
        }
      }
      a.out[i] = a.add ? a.out[i] + sum : sum;
    }
  }
}

// A block has one tap of one channel.
KERNEL(depthwise_weights, window) {
  SHARED double sums[THREADS];
  int c = blockIdx.x, r = blockIdx.y / a.kernel_w, q = blockIdx.y % a.kernel_w, rows = a.control->rows;
  PHASE(t) {
    float sum = 0;
    for (wide i = t; i < (wide)a.out_h * a.out_w * a.lanes; i += THREADS) {
      int lane = i % a.lanes, px = i / a.lanes;
      int h = px / a.out_w * a.stride_h - a.top + r * a.dilation_h, w = px % a.out_w * a.stride_w - a.left + q * a.dilation_w;
      if (lane < rows && h >= 0 && h < a.height && w >= 0 && w < a.width) {
        wide from = ((wide)(h * a.width + w) * a.channels + c) * a.lanes + lane;
        sum += a.x[from] * a.dy[((wide)px * a.channels + c) * a.lanes + lane];
      }
    }
    sums[t] = sum;
  }
  BLOCK_SUM(sums)
  PHASE(t) {
    if (t == 0) a.out[(c * a.kernel_h + r) * a.kernel_w + q] = sums[0];
  }
}
