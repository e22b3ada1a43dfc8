package platform

import (
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// hint is how much the kernel is asked to read at once.
const hint = 128 << 10

// preload has the kernel read the kinds' programs. The pages of a file are counted for the group that first asks for
// them, so without this the first container would be charged for a whole program that the others use for nothing; and a
// cold start would wait for the disk. What cannot be read is told when a container starts.
func preload(kinds map[string]Kind) {
	for _, k := range kinds {
		if len(k.Command) == 0 {
			continue
		}
		name, err := exec.LookPath(k.Command[0])
		if err != nil {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil {
			for at := int64(0); at < info.Size(); at += hint {
				_ = unix.Fadvise(int(f.Fd()), at, hint, unix.FADV_WILLNEED) // of more at once only the start is read
			}
		}
		f.Close()
	}
}
