package robust

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// fuzzing runs every fuzz test of the packages that S13 names, for five seconds each or for DISDEL_ROBUST_FUZZ. What go
// test finds it writes into the package's testdata.
func fuzzing(c *trial) {
	t := c.t
	long := 5 * time.Second
	if text := os.Getenv("DISDEL_ROBUST_FUZZ"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range c.tests {
		for name := range strings.Lines(testsIn(t, h.folder)) {
			name = strings.TrimSpace(name)
			if !strings.HasPrefix(name, "Fuzz") {
				continue
			}
			cmd := exec.Command("go", "test", "-run", "^$", "-fuzz", "^"+name+"$", "-fuzztime", fmt.Sprint(long),
				"-parallel", "2", "./"+h.folder)
			cmd.Dir = "../.."
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s %s: %v\n%s", h.folder, name, err, tail(out))
			}
		}
	}
}
