// What goes by channel: sums over pixels and rows, gradients of biases, batch norms (Ioffe 2015).
//
// A sum takes two launches: blocks add up their parts of a channel in float, thread by thread, and what threads and blocks have
// come to in double, always in the same order.

enum { BIAS, MOMENTS, NORM_BACK };

struct sums {
  double *out;     // [channels][parts][2]
  const float *x;  // BIAS: the gradient; MOMENTS and NORM_BACK: what the norm took
  const float *y;  // NORM_BACK: what the norm gave, where a ReLU followed, else null
  const float *dy; // NORM_BACK: the gradient
  const float *mean; // NORM_BACK: by channel
  const struct control *control;
  int channels, pixels, lanes, parts, op, unused;
};

KERNEL(channel_sums, sums) {
  SHARED double first[THREADS], second[THREADS];
  int c = blockIdx.x, part = blockIdx.y, rows = a.control->rows;
  wide from = (wide)a.pixels * part / a.parts, n = ((wide)a.pixels * (part + 1) / a.parts - from) * a.lanes;
  PHASE(t) {
    // Less the channel's first value, a large mean costs no digits.
    float s = 0, q = 0, shift = a.op == MOMENTS ? a.x[(wide)c * a.lanes] : a.op == NORM_BACK ? a.mean[c] : 0;
    for (wide i = t; i < n; i += THREADS) {
      int lane = i % a.lanes;
      wide at = ((from + i / a.lanes) * a.channels + c) * a.lanes + lane;
      if (lane >= rows) continue;
      if (a.op == NORM_BACK) {
        float g = a.y && !(a.y[at] > 0) ? 0 : a.dy[at];
        s += g;
        q += g * (a.x[at] - shift);
      } else {
        float d = a.x[at] - shift;
        s += d;
        q += d * d;
      }
    }
    first[t] = s;
    second[t] = q;
  }
  BLOCK_SUM(first)
  BLOCK_SUM(second)
  PHASE(t) {
    if (t == 0) {
      double *out = a.out + ((wide)c * a.parts + part) * 2;
      out[0] = first[0];
      out[1] = second[0];
    }
  }
}

DEVICE double total(const double *sums, int c, int parts, int which) {
  double sum = 0;
  for (int p = 0; p < parts; p++) sum += sums[((wide)c * parts + p) * 2 + which];
  return sum;
}

struct bias {
  float *out;         // [channels]
  const double *sums; // of channel_sums
  int channels, parts;
};

KERNEL(bias_back, bias) {
  PHASE(t) {
    int c = blockIdx.x * THREADS + t;
    if (c < a.channels) a.out[c] = total(a.sums, c, a.parts, 0);
  }
}

struct shift {
  float *out;        // [pixels][channels][lanes], in place
  const float *bias; // [channels]; null: 0
  wide n;
  int channels, lanes, relu, unused;
};

// bias_forward is what a convolution does behind its product, where that was a library's.
KERNEL(bias_forward, shift) {
  PHASE(t) {
    for (int k = 0; k < PER_THREAD; k++) {
      wide i = ((wide)blockIdx.x * PER_THREAD + k) * THREADS + t;
      if (i < a.n) {
        float v = a.out[i] + (a.bias ? a.bias[i / a.lanes % a.channels] : 0);
        a.out[i] = a.relu && v < 0 ? 0 : v;
      }
    }
  }
}

struct norm {
  float *running_mean, *running_variance; // by channel, as all arrays of a norm
  const float *gamma, *beta;              // null: 1 and 0
  float *mean, *inverse;                  // of the batch: kept from forward to backward; inverse is of the deviation
  float *scale, *offset, *third;          // what the value by value kernels take
  float *d_gamma, *d_beta;                // null where there are none
  const double *sums;                     // of channel_sums
  const float *x;                         // what the norm took
  const struct control *control;
  const struct result *result;
  double epsilon, momentum;
  int channels, pixels, lanes, parts;
};

// norm_forward takes the batch's mean and variance, and moves the running ones.
KERNEL(norm_forward, norm) {
  PHASE(t) {
    int c = blockIdx.x * THREADS + t;
    if (c < a.channels) {
      double count = (double)a.pixels * a.control->rows, shift = a.x[(wide)c * a.lanes];
      double s = total(a.sums, c, a.parts, 0) / count, q = total(a.sums, c, a.parts, 1) / count;
      double mean = shift + s, variance = q - s * s < 0 ? 0 : q - s * s, unbiased = variance;
      double inverse = 1 / sqrt(variance + a.epsilon), gamma = a.gamma ? a.gamma[c] : 1, beta = a.beta ? a.beta[c] : 0;
      if (count > 1) unbiased *= count / (count - 1);
      a.mean[c] = mean;
      a.inverse[c] = inverse;
      a.scale[c] = gamma * inverse;
      a.offset[c] = beta - mean * gamma * inverse;
      if (!a.result->odd) {
        a.running_mean[c] += (float)(a.momentum * (mean - a.running_mean[c]));
        a.running_variance[c] += (float)(a.momentum * (unbiased - a.running_variance[c]));
      }
    }
  }
}

// norm_infer takes the running mean and variance.
KERNEL(norm_infer, norm) {
  PHASE(t) {
    int c = blockIdx.x * THREADS + t;
    if (c < a.channels) {
      double scale = (a.gamma ? a.gamma[c] : 1) / sqrt(a.running_variance[c] + a.epsilon);
      a.scale[c] = scale;
      a.offset[c] = (a.beta ? a.beta[c] : 0) - a.running_mean[c] * scale;
    }
  }
}

KERNEL(norm_back, norm) {
  PHASE(t) {
    int c = blockIdx.x * THREADS + t;
    if (c < a.channels) {
      double count = (double)a.pixels * a.control->rows, sum = total(a.sums, c, a.parts, 0);
      double dot = total(a.sums, c, a.parts, 1), inverse = a.inverse[c], gamma = a.gamma ? a.gamma[c] : 1;
      double slope = -gamma * inverse * inverse * inverse * dot / count;
      if (a.d_gamma) a.d_gamma[c] = dot * inverse;
      if (a.d_beta) a.d_beta[c] = sum;
      a.scale[c] = gamma * inverse;
      a.offset[c] = slope;
      a.third[c] = -gamma * inverse * sum / count - slope * a.mean[c];
    }
  }
}

struct affine {
  float *out;          // forward: of the norm; backward: the gradient, in place
  const float *x;      // what the norm took
  const float *y;      // backward: what the norm gave, where a ReLU followed, else null
  const float *scale, *offset, *third;
  const struct control *control;
  wide n;
  int channels, lanes, relu, unused;
};

KERNEL(affine_forward, affine) {
  PHASE(t) {
    for (int k = 0; k < PER_THREAD; k++) {
      wide i = ((wide)blockIdx.x * PER_THREAD + k) * THREADS + t;
      if (i < a.n) {
        int c = i / a.lanes % a.channels;
        float v = a.scale[c] * a.x[i] + a.offset[c];
        a.out[i] = a.relu && v < 0 ? 0 : v;
      }
    }
  }
}

KERNEL(affine_back, affine) {
  PHASE(t) {
    int rows = a.control->rows;
    for (int k = 0; k < PER_THREAD; k++) {
      wide i = ((wide)blockIdx.x * PER_THREAD + k) * THREADS + t;
      if (i < a.n) {
        int c = i / a.lanes % a.channels;
        float g = a.y && !(a.y[i] > 0) ? 0 : a.out[i];
        a.out[i] = i % a.lanes < rows ? a.scale[c] * g + a.offset[c] * a.x[i] + a.third[c] : 0;
      }
    }
  }
}
