// Samples into images and back, and what only moves values. An image is [height][width][channel][lane], a sample a lane.

struct import {
  float *out; // with a border, which stays as it is
  const struct control *control;
  struct result *result;
  int channels, height, width;
  int top, left, full; // of the border; full is the width with it
  int lanes, unused;
};

// A tile of 32 samples by 32 values is turned over in shared memory, so that both sides are read and written in runs.
KERNEL(import_rows, import) {
  SHARED float tile[32][33];
  int plane = a.height * a.width, values = a.channels * plane;
  int first = blockIdx.x * 32, row = blockIdx.y * 32, rows = a.control->rows;
  const float *x = a.control->input;
  PHASE(t) {
    for (int k = t / 32; k < 32; k += THREADS / 32) {
      int s = first + t % 32;
      float v = 0;
      if (row + k < rows && s < values) {
        v = x[(wide)(row + k) * values + s];
        if (v - v != 0) a.result->odd = 1; // whoever writes, writes the same
      }
      tile[k][t % 32] = v;
    }
  }
  PHASE(t) {
    for (int k = t / 32; k < 32; k += THREADS / 32) {
      int s = first + k, lane = row + t % 32;
      if (s < values && lane < a.lanes) {
        int c = s / plane, h = s % plane / a.width, w = s % a.width;
        a.out[((wide)((h + a.top) * a.full + w + a.left) * a.channels + c) * a.lanes + lane] = tile[t % 32][k];
      }
    }
  }
}

enum { FLATTEN, UNFLATTEN, JOIN, SPLIT, SUBSAMPLE, SUBSAMPLE_BACK };

struct move {
  float *out;
  const float *x;
  wide n;                      // values of out
  int channels, height, width; // of the narrower image: what is flattened, joined, or has been subsampled from
  int total, first;            // channels of the wider image, and where among them the narrower one begins
  int out_h, out_w, stride;    // of a subsampled image
  int lanes, op, add, unused;
};

// source is where the value at i of the output comes from, -1 where it is zero.
DEVICE wide source(const struct move *a, wide i) {
  int lane = i % a->lanes;
  wide at = i / a->lanes;
  int plane = a->height * a->width, c, px, h, w;
  switch (a->op) {
  case FLATTEN: // out is [channel][pixel]
    c = at / plane, px = at % plane;
    return ((wide)px * a->channels + c) * a->lanes + lane;
  case UNFLATTEN:
    c = at % a->channels, px = at / a->channels;
    return ((wide)c * plane + px) * a->lanes + lane;
  case JOIN: // n is that of the narrower image; where it goes is destination's to say
    return i;
  case SPLIT:
    c = at % a->channels, px = at / a->channels;
    return ((wide)px * a->total + a->first + c) * a->lanes + lane;
  case SUBSAMPLE: // out has total channels
    c = at % a->total - a->first, px = at / a->total;
    if (c < 0 || c >= a->channels) return -1;
    return ((wide)(px / a->out_w * a->stride * a->width + px % a->out_w * a->stride) * a->channels + c) * a->lanes + lane;
  default: // SUBSAMPLE_BACK: out has channels
    c = at % a->channels, px = at / a->channels, h = px / a->width, w = px % a->width;
    if (h % a->stride || w % a->stride || h / a->stride >= a->out_h || w / a->stride >= a->out_w) return -1;
    return ((wide)(h / a->stride * a->out_w + w / a->stride) * a->total + a->first + c) * a->lanes + lane;
  }
}

DEVICE wide destination(const struct move *a, wide i) {
  if (a->op != JOIN) return i;
  wide at = i / a->lanes;
  return (at / a->channels * a->total + a->first + at % a->channels) * a->lanes + i % a->lanes;
}

KERNEL(move_values, move) {
  PHASE(t) {
    for (int k = 0; k < PER_THREAD; k++) {
      wide i = ((wide)blockIdx.x * PER_THREAD + k) * THREADS + t;
      if (i < a.n) {
        wide from = source(&a, i), to = destination(&a, i);
        float v = from < 0 ? 0 : a.x[from];
        a.out[to] = a.add ? a.out[to] + v : v;
      }
    }
  }
}
