package examples_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/examples"
)

func Example() {
	e, err := examples.Get("lenet-fashion")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Title)
	// Output: LeNet-5 on all 60,000 images of Fashion-MNIST.
}

func ExamplePython() {
	text, err := examples.Python(examples.PythonJob)
	if err != nil {
		fmt.Println(err)
		return
	}
	first, _, _ := strings.Cut(string(text), "\n")
	fmt.Println(first)
	// Output: # A small PyTorch program on handwritten digits: the job of disdel quickstart --python.
}

// Every example is a valid job file that says in its first line what it does, and then how to run it.
func TestEveryExampleIsAJobThatSaysHowToRunIt(t *testing.T) {
	list := examples.List()
	if len(list) < 5 {
		t.Fatalf("there are %d examples", len(list))
	}
	for _, e := range list {
		if e.Name != "batch" { // a matrix is read by ParseMany
			if _, err := jobfile.Parse(e.Name+".yaml", []byte(e.File), nil); err != nil {
				t.Errorf("%s: %v", e.Name, err)
			}
		}
		if !strings.HasPrefix(e.File, "# "+e.Title+"\n") || len(e.Title) > 80 {
			t.Errorf("%s: the title is %q", e.Name, e.Title)
		}
		if !strings.Contains(e.File, "#   disdel ") {
			t.Errorf("%s: it does not say how to run it", e.Name)
		}
		if strings.Contains(e.File, "examples/") {
			t.Errorf("%s: it needs a checkout", e.Name)
		}
	}
	if _, err := examples.Get("nothing"); disdel.KindOf(err) != disdel.NotFound {
		t.Errorf("an unknown name: %v", err)
	}
}
