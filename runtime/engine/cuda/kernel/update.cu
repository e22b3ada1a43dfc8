// Optimisers and clipping, over whole lists of arrays in one launch.

// An array of weights, with what belongs to it.
struct segment {
  float *value;
  const float *gradient;
  float *first, *second; // moments; null where the optimiser has none
  wide n;
};

struct update {
  const struct segment *segments; // as many as the grid is high
  const struct control *control;
  const struct result *result;
  float decay;                    // of the weights, added to the gradient
  float momentum, nesterov;       // SGD
  float beta1, rest1, beta2, rest2, epsilon; // Adam and Lion; rest is 1 less beta
};

// w -= rate (scale g + decay w), with the velocity of momentum (Sutskever 2013; PyTorch's form).
KERNEL(sgd, update) {
  PHASE(t) {
    struct segment s = a.segments[blockIdx.y];
    float rate = a.control->rate, scale = a.result->scale;
    for (int k = 0; k < PER_THREAD && !stopped(a.result); k++) {
      wide i = ((wide)blockIdx.x * PER_THREAD + k) * THREADS + t;
      if (i < s.n) {
        float g = scale * s.gradient[i] + a.decay * s.value[i];
        if (s.first) {
          float v = a.momentum * s.first[i] + g;
          s.first[i] = v;
          g = a.nesterov != 0 ? a.momentum * v + g : v;
        }
        s.value[i] += rate * g;
      }
    }
  }
}

// Adam (Kingma 2015), and AdamW (Loshchilov 2019) by what control keeps of the weights.
KERNEL(adam, update) {
  PHASE(t) {
    struct segment s = a.segments[blockIdx.y];
    float rate = a.control->adam_rate, root = a.control->adam_root, keep = a.control->keep, scale = a.result->scale;
    for (int k = 0; k < PER_THREAD && !stopped(a.result); k++) {
      wide i = ((wide)blockIdx.x * PER_THREAD + k) * THREADS + t;
      if (i < s.n) {
        float g = scale * s.gradient[i] + a.decay * s.value[i];
        float m = a.beta1 * s.first[i] + a.rest1 * g, v = a.beta2 * s.second[i] + a.rest2 * g * g;
        s.first[i] = m;
        s.second[i] = v;
        s.value[i] = keep * s.value[i] + rate * m / (sqrtf(v) * root + a.epsilon);
      }
    }
  }
}

// Lion (Chen 2023), with its decay by what control keeps of the weights. What is no number stays none.
KERNEL(lion, update) {
  PHASE(t) {
    struct segment s = a.segments[blockIdx.y];
    float rate = a.control->rate, keep = a.control->keep, scale = a.result->scale;
    for (int k = 0; k < PER_THREAD && !stopped(a.result); k++) {
      wide i = ((wide)blockIdx.x * PER_THREAD + k) * THREADS + t;
      if (i < s.n) {
        float g = scale * s.gradient[i], m = s.first[i];
        float step = a.beta1 * m + a.rest1 * g;
        s.first[i] = a.beta2 * m + a.rest2 * g;
        s.value[i] = keep * s.value[i] + (step > 0 ? rate : step < 0 ? -rate : step);
      }
    }
  }
}

struct clip {
  double *out; // [segments][parts]
  const struct segment *segments;
  struct result *result;
  double limit;
  int count, parts; // of segments
};

// A part of a segment's sum of squares: the grid is parts x segments.
KERNEL(clip_squares, clip) {
  SHARED double sums[THREADS];
  PHASE(t) {
    struct segment s = a.segments[blockIdx.y];
    double sum = 0;
    for (wide i = (wide)blockIdx.x * THREADS + t; i < s.n; i += (wide)a.parts * THREADS) {
      sum += (double)s.gradient[i] * s.gradient[i];
    }
    sums[t] = sum;
  }
  BLOCK_SUM(sums)
  PHASE(t) {
    if (t == 0) a.out[blockIdx.y * a.parts + blockIdx.x] = sums[0];
  }
}

// The scale at which the gradient is no longer than the limit (Pascanu 2013). One block.
KERNEL(clip_scale, clip) {
  PHASE(t) {
    if (t == 0) {
      double sum = 0;
      for (int i = 0; i < a.count * a.parts; i++) sum += a.out[i];
      if (sum - sum != 0) a.result->bad = 1;
      if (sqrt(sum) > a.limit) a.result->scale = a.limit / sqrt(sum);
    }
  }
}
