// Convolutions and dense layers, which are convolutions whose kernel is the whole image: forward, by the data and by the weights.
// Each is one product of matrices whose right side is not in memory as such: its values are looked up in the image as they are
// needed (implicit GEMM). Weights are [filter][channel of the group][kernel height][kernel width], as PyTorch has them.
//
// The product itself is product.cuh's, for blocks of 16 and of 64 rows.

struct convolution {
  float *out;           // forward: of the output; data: by the image; weights: [parts][filters][columns]
  const float *x;       // forward and weights: the image; data: the gradient of the output
  const float *weights; // forward and data; weights: the gradient of the output
  const float *bias;    // forward; may be null
  const struct control *control;
  int channels, height, width;                 // of the image, as it lies in memory
  int filters, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
  int top, left;                               // padding
  int out_h, out_w, groups, lanes;
  int relu;                                    // forward, of the output
  int add;                                     // data: to what is there
  int parts;                                   // weights: in how many the sum is divided
  int unused;
};

#define DEPTH 16    // values of the sum that a block takes at a time
#define COLUMNS 128 // of a block's part of the product
#define PER_COLUMN (COLUMNS / 16)
