package kernel

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

//go:embed *.cu *.cuh
var files embed.FS

// names are the kernels, in the order of their sources.
var names = [...]string{
	"pointwise_values", "dropout_values", "import_rows", "move_values", "sum_parts",
	"convolution_forward_16", "convolution_data_16", "convolution_weights_16",
	"convolution_forward_64", "convolution_data_64", "convolution_weights_64",
	"channel_sums", "bias_back", "bias_forward", "norm_forward", "norm_infer", "norm_back", "affine_forward",
	"affine_back",
	"max_pool", "max_pool_back", "average_pool", "average_pool_back", "adaptive_pool", "adaptive_pool_back",
	"depthwise_forward", "depthwise_data", "depthwise_weights",
	"loss_rows", "loss_total", "sgd", "adam", "clip_squares", "clip_scale",
}

// matrixNames are the kernels that take a device's matrix units, in the order of their sources.
var matrixNames = [...]string{
	"convolution_forward_16_tf32", "convolution_data_16_tf32", "convolution_weights_16_tf32",
	"convolution_forward_64_tf32", "convolution_data_64_tf32", "convolution_weights_64_tf32",
	"convolution_forward_16_bf16", "convolution_data_16_bf16", "convolution_weights_16_bf16",
	"convolution_forward_64_bf16", "convolution_data_64_bf16", "convolution_weights_64_bf16",
}

// Names are the kernels that Source has.
func Names() []string { return slices.Clone(names[:]) }

// MatrixNames are the kernels that MatrixSource has.
func MatrixNames() []string { return slices.Clone(matrixNames[:]) }

// product is what convolutions are made of, for blocks of so many rows: how they multiply, and what they do around it.
const product = `#define VARIANT(name) name##_%d%s
#define ROWS %d
#define PER_ROW %d
#define HALVES %d
%s%s`

// meant are the words that a product gives a meaning of its own.
var meant = strings.Fields("VARIANT ROWS PER_ROW HALVES PAD VALUES ROUND FRAGMENTS ROW_OF COLUMN_OF MULTIPLY DOWN " +
	"ACROSS TILE_ROW TILE_COLUMN SIDE OTHER")

// products are those of one kind: the file that says how they multiply, with the end of their names.
func products(how, suffix string, halves bool) string {
	var b strings.Builder
	for _, rows := range []int{fewRows, manyRows} {
		fmt.Fprintf(&b, product, rows, suffix, rows, rows/16, flag(halves), text(how), text("product.cuh"))
		for _, word := range meant {
			fmt.Fprintf(&b, "#undef %s\n", word)
		}
	}
	return b.String()
}

func texts(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString(text(name))
	}
	return b.String()
}

// Source is the kernels of every device as one text.
func Source() string {
	return texts("common.cuh", "pointwise.cu", "image.cu", "convolution.cuh", "convolution.cu") +
		products("plain.cuh", "", false) + texts("channel.cu", "window.cu", "loss.cu", "update.cu")
}

// MatrixSource is the kernels that take the matrix units of devices from compute capability 8.0 on, as one text.
func MatrixSource() string { return texts("common.cuh", "convolution.cuh") + matrixProducts() }

// WholeSource is all kernels as one text, for a compiler that knows no devices.
func WholeSource() string { return Source() + matrixProducts() }

func matrixProducts() string {
	return text("rounding.cuh") + products("matrix.cuh", TF32.suffix(), false) +
		products("matrix.cuh", BF16.suffix(), true)
}

func text(name string) string {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(data)
}

// Hash identifies Source, and MatrixHash MatrixSource: compiled kernels carry theirs.
func Hash() string { return hash(Source()) }

// MatrixHash is Hash of MatrixSource.
func MatrixHash() string { return hash(MatrixSource()) }

func hash(source string) string {
	sum := sha256.Sum256([]byte(source))
	return hex.EncodeToString(sum[:])
}
