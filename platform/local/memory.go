package local

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseMemory returns memory that starting needed and serving does not, because a platform may idle for days: the
// heap, and the unchanged pages of the program's file, which stay in the kernel's cache.
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

// unchangedPart reads a line of /proc/self/maps (proc(5)): the addresses of a mapping of file that cannot be written.
func unchangedPart(line, file string) (from, to uintptr, ok bool) {
	fields := strings.Fields(line)
	const path = 5
	if len(fields) <= path || fields[path] != file || strings.Contains(fields[1], "w") {
		return 0, 0, false
	}
	_, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to)
	return from, to, err == nil && from < to
}
