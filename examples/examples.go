// Package examples holds the example job files that the program carries: `disdel example` prints them.
package examples

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/disdel/disdel"
)

//go:embed *.yaml python/*.yaml python/*.py
var jobFiles embed.FS

// Example is one job file.
type Example struct {
	Name  string `json:"name"`
	Title string `json:"title"` // the first comment line: what the job does
	File  string `json:"file"`  // the text of the job file
}

// List returns all examples, by name.
func List() []Example {
	entries, _ := fs.ReadDir(jobFiles, ".") //nolint:errcheck // the root of embedded files is always there
	var out []Example
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		text, _ := jobFiles.ReadFile(entry.Name()) //nolint:errcheck // so is every file that it lists
		first, _, _ := strings.Cut(string(text), "\n")
		out = append(out, Example{
			Name: strings.TrimSuffix(entry.Name(), ".yaml"), Title: strings.TrimPrefix(first, "# "), File: string(text),
		})
	}
	return out
}

// Names of files that Python returns.
const (
	PythonImages = "images.py"   // a PyTorch network for images of any size
	PythonTable  = "table.py"    // one for the columns of a table
	PythonJob    = "digits.yaml" // a job that trains PythonImages on the data set digits
)

// Python returns a file of the example in Python. It returns NotFound for another name.
func Python(name string) ([]byte, error) {
	text, err := jobFiles.ReadFile("python/" + name)
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.NotFound, Op: "find example", Msg: fmt.Sprintf("there is no file %q", name)}
	}
	return text, nil
}

// Get returns one example. Its error is of kind NotFound, and names all examples.
func Get(name string) (Example, error) {
	var names []string
	for _, e := range List() {
		if e.Name == strings.TrimSuffix(name, ".yaml") {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return Example{}, &disdel.Error{
		Kind: disdel.NotFound, Msg: fmt.Sprintf("there is no example %q", name),
		Hint: "the examples are " + strings.Join(names, ", "),
	}
}
