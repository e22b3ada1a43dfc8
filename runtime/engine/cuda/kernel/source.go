package kernel

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"strings"
)

//go:embed *.cu *.cuh
var files embed.FS

// Names are the kernels, in the order of their sources.
var names = [...]string{
	"pointwise_values", "dropout_values", "import_rows", "move_values", "sum_parts",
	"convolution_forward_16", "convolution_data_16", "convolution_weights_16",
	"convolution_forward_64", "convolution_data_64", "convolution_weights_64",
	"channel_sums", "bias_back", "norm_forward", "norm_infer", "norm_back", "affine_forward", "affine_back",
	"max_pool", "max_pool_back", "average_pool", "average_pool_back", "adaptive_pool", "adaptive_pool_back",
	"depthwise_forward", "depthwise_data", "depthwise_weights",
	"loss_rows", "loss_total", "sgd", "adam", "clip_squares", "clip_scale",
}

// Names are the kernels that Source has.
func Names() []string { return append([]string(nil), names[:]...) }

// product is what convolutions are made of, for blocks of 16 rows and of 64.
const product = `#define VARIANT(name) name##_%d
#define ROWS %d
#define PER_ROW %d
%s
#undef VARIANT
#undef ROWS
#undef PER_ROW
`

// Source is all kernels as one text.
func Source() string {
	var b strings.Builder
	for _, name := range []string{"common.cuh", "pointwise.cu", "image.cu", "convolution.cu"} {
		b.WriteString(text(name))
	}
	for _, rows := range []int{fewRows, manyRows} {
		fmt.Fprintf(&b, product, rows, rows, rows/16, text("product.cuh"))
	}
	for _, name := range []string{"channel.cu", "window.cu", "loss.cu", "update.cu"} {
		b.WriteString(text(name))
	}
	return b.String()
}

func text(name string) string {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(data)
}

// Hash identifies Source: compiled kernels carry it.
func Hash() string {
	sum := sha256.Sum256([]byte(Source()))
	return hex.EncodeToString(sum[:])
}
