package ptx

import (
	"bytes"
	"compress/gzip"
	_ "embed" // of the texts
	"io"
	"regexp"
	"strconv"
	"strings"
)

//go:embed kernels.ptx.gz
var packed []byte

//go:embed matrix.ptx.gz
var packedMatrix []byte

// Text is the kernels of every device, Matrix those that take the matrix units of younger ones.
func Text() string { return unpacked(packed) }

// Matrix is the kernels that take matrix units.
func Matrix() string { return unpacked(packedMatrix) }

func unpacked(packed []byte) string {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err) // it is embedded, and a test unpacks it
	}
	text, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// mark begins the line that says which sources the text is of.
const mark = "// of sources "

// Of is the hash of the sources that a text was made of.
func Of(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	of, _ := strings.CutPrefix(line, mark)
	return of
}

var parameter = regexp.MustCompile(`\.param \.align 8 \.b8 (\w+)_param_0\[(\d+)\]`)

// Arguments is how many bytes of arguments each kernel of a text takes.
func Arguments(text string) map[string]int {
	out := map[string]int{}
	for _, m := range parameter.FindAllStringSubmatch(text, -1) {
		out[m[1]], _ = strconv.Atoi(m[2]) // digits
	}
	return out
}
