package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// torchPython is a Python with PyTorch: DISDEL_TEST_PYTHON, that of the path, or the system's; "" if there is none.
var torchPython = sync.OnceValue(func() string {
	for _, name := range []string{os.Getenv("DISDEL_TEST_PYTHON"), "python3", "/usr/bin/python3"} {
		path, err := exec.LookPath(name)
		if err == nil && exec.Command(path, "-c", "import torch").Run() == nil {
			return path
		}
	}
	return ""
})

// scriptCondition knows the condition torch: there is a Python with PyTorch.
func scriptCondition(name string) (bool, error) {
	if name != "torch" {
		return false, fmt.Errorf("there is no condition %q", name)
	}
	return torchPython() != "", nil
}

// useTorch is the command torch of the scripts: commands and servers that follow use a Python with PyTorch.
func useTorch(ts *testscript.TestScript, _ bool, _ []string) {
	path := torchPython()
	ts.Setenv("DISDEL_PYTHON", path)
	ts.Setenv("PATH", filepath.Dir(path)+string(os.PathListSeparator)+ts.Getenv("PATH"))
}
