package local

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseMemory gives back what starting took and serving does not need: a platform may idle for days. Beside the heap
// these are the pages of the program's own file, whose unchanged parts the kernel reads again where they are used; they
// stay in its cache.
func releaseMemory() {
	debug.FreeOSMemory()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		from, to, ok := unchangedPart(lines.Text(), self)
		if ok {
			unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED) //nolint:errcheck // it is advice
		}
	}
}

// unchangedPart reads a line of /proc/self/maps (proc(5)): where a file is mapped that cannot be written there.
func unchangedPart(line, file string) (from, to uintptr, ok bool) {
	fields := strings.Fields(line)
	const path = 5
	if len(fields) <= path || fields[path] != file || strings.Contains(fields[1], "w") {
		return 0, 0, false
	}
	_, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to)
	return from, to, err == nil && from < to
}
