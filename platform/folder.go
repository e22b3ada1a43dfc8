package platform

import (
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/disdel/disdel"
)

// spaceOf is what a folder's files take on disk, as du counts: blocks, so that a sparse file is no more than it holds.
func spaceOf(dir string) disdel.Bytes {
	const block = 512
	var sum disdel.Bytes
	filepath.WalkDir(dir, func(_ string, entry fs.DirEntry,
		err error,
	) error { //nolint:errcheck // what vanished meanwhile takes nothing
		if err != nil {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && entry.Type().IsRegular() {
			sum += disdel.Bytes(s.Blocks) * block
		}
		return nil
	})
	return sum
}
