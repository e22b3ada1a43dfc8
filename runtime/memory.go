package runtime

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

// Memory reads this process's resident memory and its high-water mark from /proc; both are 0 where there is none.
func Memory() (resident, peak disdel.Bytes) {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch name {
		case "VmRSS":
			resident = kilobytes(value)
		case "VmHWM":
			peak = kilobytes(value)
		}
	}
	return resident, peak
}

func kilobytes(text string) disdel.Bytes {
	n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
	return disdel.Bytes(n) * disdel.KB
}

// ContainerLimit reads the memory limit of this process's control group (version 2, then 1), 0 where there is none.
func ContainerLimit() disdel.Bytes {
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		if err == nil && n < 1<<50 { // version 1 says "none" with a number near 2^63
			return disdel.Bytes(n)
		}
	}
	return 0
}
