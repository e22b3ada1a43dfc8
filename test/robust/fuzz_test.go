package robust

import (
	"os"
	"os/exec"
	"strings"
)

// fuzzing runs every fuzz test of the packages that S13 names: 5,000 inputs each, or as many or as long as
// DISDEL_ROBUST_FUZZ says, in the form of go test's -fuzztime. The default is a number and no time: a run that ends by
// its time fails on a busy machine although it found nothing. Go test writes an input that fails into the package's
// testdata.
func fuzzing(c *trial) {
	t := c.t
	long := "5000x"
	if text := os.Getenv("DISDEL_ROBUST_FUZZ"); text != "" {
		long = text
	}
	for _, h := range c.tests {
		for name := range strings.Lines(testsIn(t, h.folder)) {
			name = strings.TrimSpace(name)
			if !strings.HasPrefix(name, "Fuzz") {
				continue
			}
			cmd := exec.Command("go", "test", "-run", "^$", "-fuzz", "^"+name+"$", "-fuzztime", long,
				"-parallel", "2", "./"+h.folder)
			cmd.Dir = "../.."
			out, err := cmd.CombinedOutput()
			switch {
			case err == nil:
			case strings.Contains(string(out), "context deadline exceeded") &&
				!strings.Contains(string(out), "Failing input written to"):
				t.Logf("%s %s: its time ended in the middle of an input; it found nothing", h.folder, name)
			default:
				t.Errorf("%s %s: %v\n%s", h.folder, name, err, tail(out))
			}
		}
	}
}
