// Losses, each the mean over the rows, and what a last softmax or sigmoid gives. A thread has a row; what it reads lies side by side with
// what its neighbours read. In double, as the processor's engine.

enum { CROSS_ENTROPY, BINARY_CROSS_ENTROPY, SQUARES };

struct loss {
  const float *x;    // the outputs, before a last softmax or sigmoid: [pixel][channel][lane]
  float *gradient;   // by x, the same way; null where none is asked for
  float *out;        // [rows][classes], behind a last softmax or sigmoid; null where none is asked for
  double *losses;    // by row
  int *right;        // by row
  const struct control *control;
  int classes, pixels, lanes, softmax, kind, sigmoid;
};

// row is what a thread works on.
struct row {
  const struct loss *a;
  int lane;
};

DEVICE wide spot(struct row o, int k) {
  int channels = o.a->classes / o.a->pixels;
  return ((wide)(k % o.a->pixels) * channels + k / o.a->pixels) * o.a->lanes + o.lane;
}

DEVICE double output(struct row o, int k) { return o.a->x[spot(o, k)]; }

DEVICE int largest(struct row o) {
  int best = 0;
  for (int k = 1; k < o.a->classes; k++) {
    if (output(o, k) > output(o, best)) best = k;
  }
  return best;
}

// exponentials is the sum of exp(v - top) over all outputs but one, -1 for none; top is the largest of those.
DEVICE double exponentials(struct row o, int but, double *top) {
  double sum = 0;
  *top = -INFINITE;
  for (int k = 0; k < o.a->classes; k++) {
    if (k != but) *top = fmax(*top, output(o, k));
  }
  for (int k = 0; k < o.a->classes; k++) {
    if (k != but) sum += exp(output(o, k) - *top);
  }
  return sum;
}

// Of the outputs themselves: however small a probability, its logarithm is a difference of outputs.
DEVICE double cross_entropy(struct row o, int label, double scale) {
  double top, sum = exponentials(o, -1, &top);
  for (int k = 0; o.a->gradient && k < o.a->classes; k++) {
    double p = exp(output(o, k) - top) / sum;
    o.a->gradient[spot(o, k)] = scale * (k == label ? p - 1 : p);
  }
  return label < 0 ? 0 : log(sum) - (output(o, label) - top);
}

// Mean squares, or binary cross-entropy of outputs that are probabilities as they are.
DEVICE double by_output(struct row o, int label, double scale) {
  double sum = 0, n = o.a->classes;
  for (int k = 0; k < o.a->classes; k++) {
    double y = output(o, k), t = k == label, slope;
    if (y != y) return y;
    if (o.a->kind == SQUARES) {
      sum += (y - t) * (y - t);
      slope = 2 * (y - t);
    } else {
      y = fmin(fmax(y, 1e-7), 1 - 1e-7);
      sum -= t * log(y) + (1 - t) * log(1 - y);
      slope = (y - t) / (y * (1 - y));
    }
    if (o.a->gradient) o.a->gradient[spot(o, k)] = scale * slope / n;
  }
  return sum / n;
}

DEVICE double sigmoid_of(double z) { return 1 / (1 + exp(-z)); }

// Binary cross-entropy of sigmoids, by the outputs before them. The logarithm of a sigmoid that rounds to 0 or 1 would be lost.
DEVICE double binary_of_sigmoid(struct row o, int label, double scale) {
  double sum = 0, n = o.a->classes;
  for (int k = 0; k < o.a->classes; k++) {
    double z = output(o, k), t = k == label;
    sum += fmax(z, 0.0) - z * t + log1p(exp(-fabs(z)));
    if (o.a->gradient) o.a->gradient[spot(o, k)] = scale * (sigmoid_of(z) - t) / n;
  }
  return sum / n;
}

// Mean squares of a softmax p, whose slope is s: the gradient is p (s - sum of s p).
DEVICE double squares_of_softmax(struct row o, int label, double scale) {
  double top, all = exponentials(o, -1, &top), sum = 0, dot = 0, n = o.a->classes;
  for (int k = 0; k < o.a->classes; k++) {
    double p = (float)(exp(output(o, k) - top) / all), d = p - (k == label);
    if (p != p) return p;
    sum += d * d;
    dot += 2 * d * p;
  }
  for (int k = 0; o.a->gradient && k < o.a->classes; k++) {
    double p = (float)(exp(output(o, k) - top) / all);
    o.a->gradient[spot(o, k)] = scale / n * p * (2 * (p - (k == label)) - dot);
  }
  return sum / n;
}

// Binary cross-entropy of a softmax p: -log p of the label and -log(1-p) of every other class, over the number of classes, by
// the outputs before the softmax, so that nothing is clipped.
DEVICE double binary_of_softmax(struct row o, int label, double scale) {
  int best = largest(o);
  double first = output(o, best), sum = 0, top, others_of_best = exponentials(o, best, &top);
  double rest = top - first + log(others_of_best); // the logarithm of the sum of all but the largest, over the largest
  double loss = 0, odds = 0, n = o.a->classes;     // odds: p over 1-p, of all classes but the label and the largest
  for (int k = 0; k < o.a->classes; k++) sum += exp(output(o, k) - first);
  for (int k = 0; k < o.a->classes; k++) {
    double v = output(o, k), e = exp(v - first);
    if (k == label) {
      loss += log(sum) - (v - first);
    } else if (k == best) { // the difference of sum and e would have lost its digits
      loss += log(sum) - rest;
    } else {
      loss += log(sum) - log(sum - e);
      odds += e / (sum - e);
    }
  }
  for (int k = 0; o.a->gradient && k < o.a->classes; k++) {
    double v = output(o, k), e = exp(v - first), p = e / sum, own = p, others = odds;
    if (k == label && k == best) {
      own = -exp(rest) / sum;
    } else if (k == label) {
      own = p - 1;
    } else if (k == best) {
      others -= 1;
    } else {
      others -= e / (sum - e) + 1;
    }
    double slope = own - p * others;
    if (best != label && k != best) slope -= exp(v - first - rest) / sum; // p times the odds of the largest
    o.a->gradient[spot(o, k)] = scale / n * slope;
  }
  return loss / n;
}

KERNEL(loss_rows, loss) {
  PHASE(t) {
    int lane = blockIdx.x * THREADS + t, rows = a.control->rows;
    struct row o;
    o.a = &a;
    o.lane = lane;
    if (lane < rows) {
      int label = a.control->labels[lane], binary = a.kind == BINARY_CROSS_ENTROPY;
      double scale = 1.0 / rows, loss = 0;
      if (label >= 0) {
        if (a.kind == CROSS_ENTROPY) loss = cross_entropy(o, label, scale);
        else if (a.sigmoid) loss = binary_of_sigmoid(o, label, scale);
        else if (!a.softmax) loss = by_output(o, label, scale);
        else loss = binary ? binary_of_softmax(o, label, scale) : squares_of_softmax(o, label, scale);
      }
      a.losses[lane] = loss;
      a.right[lane] = label >= 0 && largest(o) == label;
      double top = 0, sum = a.softmax && a.out ? exponentials(o, -1, &top) : 1;
      for (int k = 0; a.out && k < a.classes; k++) {
        double y = output(o, k);
        if (a.softmax) y = exp(y - top) / sum;
        if (a.sigmoid) y = sigmoid_of(y);
        a.out[(wide)lane * a.classes + k] = y;
      }
    } else if (lane < a.lanes) {
      for (int k = 0; a.gradient && k < a.classes; k++) a.gradient[spot(o, k)] = 0;
    }
  }
}

struct loss_sum {
  struct result *result;
  const double *losses;
  const int *right;
  const struct control *control;
};

// One block.
KERNEL(loss_total, loss_sum) {
  SHARED double losses[THREADS];
  SHARED int right[THREADS];
  int rows = a.control->rows;
  PHASE(t) {
    double loss = 0;
    int n = 0;
    for (int i = t; i < rows; i += THREADS) {
      loss += a.losses[i];
      n += a.right[i];
    }
    losses[t] = loss;
    right[t] = n;
  }
  BLOCK_SUM(losses)
  BLOCK_SUM(right)
  PHASE(t) {
    if (t == 0) {
      a.result->loss = losses[0] / rows;
      a.result->correct = right[0];
    }
  }
}
