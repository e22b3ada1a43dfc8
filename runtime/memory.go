package runtime

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

// Memory reads from /proc the memory of this process that the kernel cannot take back, and its peak; both are 0 if
// /proc has no such file. Pages of files are left out: the kernel shares them between containers and drops them when
// memory is short, and their number varies by 20 MB. The peak is the high-water mark without the pages of files that
// are mapped now, so that it is never too high.
func Memory() (resident, peak disdel.Bytes) {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	field := map[string]disdel.Bytes{}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); strings.HasSuffix(value, " kB") {
			field[name] = kilobytes(value)
		}
	}
	resident = field["RssAnon"] + field["RssShmem"]
	return resident, max(resident, field["VmHWM"]-field["RssFile"])
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
