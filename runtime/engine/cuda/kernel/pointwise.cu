// Value by value: activations and their gradients, sums, dropout.

enum {
  CLEAR, COPY, ADD, ADD_RELU, RELU, RELU_BACK, CLAMP, CLAMP_BACK, SIGMOID, SIGMOID_BACK, TANH, TANH_BACK,
  HARD_SWISH, HARD_SWISH_BACK
};

struct pointwise {
  float *out;
  const float *x; // of gradients: of the output; null where nothing is read
  const float *y; // the second value of a sum; of gradients: the output, or the input of HARD_SWISH
  wide n;
  int op;
  float top; // of CLAMP
};

// What is no number stays none: a network that has diverged must not look healthy.
DEVICE float point(int op, float x, float y, float top) {
  switch (op) {
  case COPY: return x;
  case ADD: return x + y;
  case ADD_RELU: return x + y < 0 ? 0 : x + y;
  case RELU: return x < 0 ? 0 : x;
  case RELU_BACK: return y > 0 ? x : 0;
  case CLAMP: return x < 0 ? 0 : x > top ? top : x;
  case CLAMP_BACK: return y > 0 && y < top ? x : 0;
  case SIGMOID: return 1 / (1 + expf(-x));
  case SIGMOID_BACK: return x * y * (1 - y);
  case TANH: return tanhf(x);
  case TANH_BACK: return x * (1 - y * y);
  case HARD_SWISH: return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) * (1.0f / 6);
  case HARD_SWISH_BACK: return y <= -3 ? 0 : y >= 3 ? x : x * (y + y + 3) * (1.0f / 6);
  default: return 0;
  }
}

KERNEL(pointwise_values, pointwise) {
  PHASE(t) {
    UNROLL
    for (int k = 0; k < PER_THREAD; k++) {
      wide i = ((wide)blockIdx.x * PER_THREAD + k) * THREADS + t;
      if (i < a.n) a.out[i] = point(a.op, a.x ? a.x[i] : 0, a.y ? a.y[i] : 0, a.top);
    }
  }
}

struct dropout {
  float *out;
  const float *x;
  const struct control *control;
  wide n;
  bits node;  // of the graph
  float keep; // 1 / (1 - rate)
  unsigned bound; // the rate, of 2^32
};

// mix is splitmix64's finaliser (Steele 2014), as the processor's engine has it: the same values are dropped.
DEVICE bits mix(bits z) {
  z *= 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

KERNEL(dropout_values, dropout) {
  PHASE(t) {
    bits seed = a.control->seed ^ (bits)a.control->step << 20 ^ a.node << 52;
    for (int k = 0; k < PER_THREAD; k++) {
      wide i = ((wide)blockIdx.x * PER_THREAD + k) * THREADS + t;
      if (i < a.n) a.out[i] = (unsigned)(mix(seed + (bits)i) >> 32) < a.bound ? 0 : a.keep * a.x[i];
    }
  }
}
