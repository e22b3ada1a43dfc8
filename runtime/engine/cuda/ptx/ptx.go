package ptx

import (
	"bytes"
	"compress/gzip"
	_ "embed" // of the text
	"io"
	"regexp"
	"strconv"
	"strings"
)

//go:embed kernels.ptx.gz
var packed []byte

// Text is all kernels.
func Text() string {
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

// Of is the hash of the sources that the text was made of.
func Of() string {
	line, _, _ := strings.Cut(Text(), "\n")
	of, _ := strings.CutPrefix(line, mark)
	return of
}

var parameter = regexp.MustCompile(`\.param \.align 8 \.b8 (\w+)_param_0\[(\d+)\]`)

// Arguments is how many bytes of arguments each kernel takes.
func Arguments() map[string]int {
	out := map[string]int{}
	for _, m := range parameter.FindAllStringSubmatch(Text(), -1) {
		out[m[1]], _ = strconv.Atoi(m[2]) // digits
	}
	return out
}
