package cli

import (
	"os"
	"strings"
	"testing"
)

func Example_versionDocument() {
	versionDocument{Version: "1.0", Go: "go1.26", Platform: "linux/amd64", Kernels: "avx2", Static: true}.Print(os.Stdout)
	// Output:
	// disdel 1.0
	// revision  unknown
	// go        go1.26 linux/amd64
	// kernels   avx2
	// linked    statically
}

func TestWhatWasStampedCounts(t *testing.T) {
	d := readBuild("v1", "abc")
	if d.Version != "v1" || d.Revision != "abc" || d.Kernels == "" || !strings.Contains(d.Platform, "/") {
		t.Errorf("%+v", d)
	}
}
