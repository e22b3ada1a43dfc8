package kernel

import (
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/disdel/disdel/runtime/engine/cuda/driver"
)

//go:embed *.cu *.cuh
var files embed.FS

// Names are the kernels that Source has, in its order.
func Names() []string { return namesOf(Source()) }

// MatrixNames are the kernels that MatrixSource has.
func MatrixNames() []string { return namesOf(MatrixSource()) }

// namesOf are the kernels of a source: each begins a line. A VARIANT's name ends as the product before it says.
func namesOf(source string) (names []string) {
	begins := regexp.MustCompile(`(?m)^KERNEL\((?:VARIANT\((\w+)\)|(\w+)), |^#define VARIANT\(name\) name##(\w+)$`)
	suffix := ""
	for _, m := range begins.FindAllStringSubmatch(source, -1) {
		switch variant, name := m[1], m[2]; {
		case variant != "":
			names = append(names, variant+suffix)
		case name != "":
			names = append(names, name)
		default:
			suffix = m[3]
		}
	}
	return names
}

// product is what convolutions are made of, for blocks of so many rows: how they multiply, and what they do around it.
const product = `#define VARIANT(name) name##_%d%s
#define ROWS %d
#define PER_ROW %d
#define HALVES %d
%s%s`

// placeholders are the words that a product gives a meaning of its own.
var placeholders = strings.Fields("VARIANT ROWS PER_ROW HALVES PAD VALUES ROUND FRAGMENTS ROW_OF COLUMN_OF " +
	"MULTIPLY DOWN ACROSS TILE_ROW TILE_COLUMN SIDE OTHER")

// products are those of one kind: the file that says how they multiply, with the end of their names.
func products(how, suffix string, halves bool) string {
	var b strings.Builder
	for _, rows := range []int{fewRows, manyRows} {
		fmt.Fprintf(&b, product, rows, suffix, rows, rows/16, flag(halves), text(how), text("product.cuh"))
		for _, word := range placeholders {
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

// Threads is how many threads each block of each kernel has.
const Threads = 256

// perThread is how many values a thread of a kernel has that goes value by value.
const perThread = 4

// over is n divided by each, rounded up.
func over(n, each int) int { return (n + each - 1) / each }

// launchOf is a launch of a kernel on blocks of Threads. The fields of args are those of the kernel's struct, in its
// order, without gaps; every kind of field is as large there as it is in Go.
func launchOf(name string, grid [3]int, args any) driver.Launch {
	data, err := binary.Append(nil, binary.LittleEndian, args)
	if err != nil {
		panic(err) // args is no struct of numbers
	}
	return driver.Launch{Kernel: name, Grid: grid, Args: data}
}

// each is a launch with a thread for every perThread of n values, one with a thread for every value.
func each(name string, n int, args any) driver.Launch {
	return launchOf(name, [3]int{over(n, Threads*perThread), 1, 1}, args)
}

func one(name string, n int, args any) driver.Launch {
	return launchOf(name, [3]int{over(n, Threads), 1, 1}, args)
}

// flag is a C int that is 0 or 1.
func flag(v bool) int32 {
	if v {
		return 1
	}
	return 0
}
