package python_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/disdel/disdel/clients/python"
)

// A process that runs Python finds the package by PYTHONPATH.
func ExampleInstall() {
	below, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(below)
	dir, err := python.Install(below)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = os.Stat(filepath.Join(dir, "disdel", "__init__.py"))
	fmt.Println(err, len(python.Digest()))
	// Output: <nil> 64
}
