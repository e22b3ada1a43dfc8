// What every kernel is written in: C that nvrtc compiles for a device and, with emulated/emulation.cuh in front, a C compiler for
// the processor. A block has THREADS threads. PHASE(t) { ... } is what thread t does between two barriers: on a device it is the
// body and a barrier behind it, on the processor a loop over all threads. What a thread keeps from one phase to the next it
// keeps in an OWN array, MINE(name, t). STEP(t) is a phase without the barrier behind it, for what its threads keep to
// themselves or to their warp; BARRIER is the barrier alone. So a phase must not be left by return or break, and its threads must not read what
// another one of them writes in it.
//
// No sum is an atomic one: whoever adds, adds in an order that the sizes alone decide, so that the bits are always the same.
#ifndef EMULATED
#define KERNEL(name, type) extern "C" __global__ void __launch_bounds__(THREADS) name(const struct type a)
#define DEVICE static __device__ __forceinline__
#define SHARED __shared__
#define PHASE(t) for (int t = threadIdx.x, more_ = 1; more_; more_ = 0, __syncthreads())
#define STEP(t) for (int t = threadIdx.x, more_ = 1; more_; more_ = 0)
#define BARRIER __syncthreads()
#define OWN(type, name, n) type name[n]
#define MINE(name, t) name
#define UNROLL _Pragma("unroll")
#define UNROLL_SOME _Pragma("unroll 8")
#define AS_BITS(v) __float_as_uint(v)
#define AS_FLOAT(b) __uint_as_float(b)
#endif
#define THREADS 256
#define PER_THREAD 4 // values of a thread, in kernels that go value by value
#define INFINITE (1e38f * 1e38f)

typedef long long wide;
typedef unsigned long long bits;

// What the host says of a call. It lies in device memory, so that the launches of a step are always the same.
struct control {
  bits seed;          // of dropout
  const float *input; // of the batch: [row][channel][height][width]
  const int *labels;  // by lane; -1: none
  float rate;         // minus the learning rate
  float adam_rate;    // the same over 1 - beta1^step
  float adam_root;    // 1 / sqrt(1 - beta2^step)
  float keep;         // what AdamW's decay leaves of a weight
  int step;           // from 1 on
  int rows;           // that the batch has; the lanes behind them hold zeros
};

// What a call says to the host, which clears it before, and sets scale to 1.
struct result {
  double loss;   // mean over the rows
  float scale;   // of gradients
  int correct;   // rows whose largest output is at their label
  int odd;       // an input is not finite
  int bad;       // the gradient's norm is not finite
};

// stopped tells that a step must change nothing.
DEVICE int stopped(const struct result *r) { return r->odd || r->bad || !(r->loss - r->loss == 0); }

// block_sum adds up the values of a block's threads, in place: the sum is in the first.
#define BLOCK_SUM(values)                                  \
  for (int half_ = THREADS / 2; half_ > 0; half_ /= 2) {   \
    PHASE(t_) {                                            \
      if (t_ < half_) values[t_] += values[t_ + half_];    \
    }                                                      \
  }
