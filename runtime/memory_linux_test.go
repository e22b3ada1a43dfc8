package runtime

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/disdel/disdel"
)

// mapped maps size bytes, of a file or of nothing, touches them, and frees them when the test ends.
func mapped(t *testing.T, f *os.File, size int) {
	t.Helper()
	fd, flags := -1, syscall.MAP_PRIVATE|syscall.MAP_ANON
	if f != nil {
		fd, flags = int(f.Fd()), syscall.MAP_PRIVATE
	}
	b, err := syscall.Mmap(fd, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, flags)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(b) }) //nolint:errcheck // the process ends soon
	if f != nil {
		if bytes.IndexByte(b, 1) >= 0 { // reads every page
			t.Fatal("the file is not empty")
		}
		return
	}
	for i := 0; i < size; i += 4096 {
		b[i] = 1
	}
}

// What counts is what the kernel cannot take back: memory of a process's own, and no pages of files, of which the
// kernel maps as many as it likes.
func TestMemoryLeavesPagesOfFilesOut(t *testing.T) {
	const size, noise = 64 << 20, 16 * disdel.MB
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mapped(t, nil, size) // the high-water mark is that of these, whatever other tests did before
	before, top := Memory()
	if before < size || top < before {
		t.Fatalf("%v of %v held, at most %v", before, disdel.Bytes(size), top)
	}
	mapped(t, f, size)
	if held, most := Memory(); held > before+noise || most > top+noise {
		t.Errorf("pages of a file count: %v held after %v, at most %v after %v", held, before, most, top)
	}
	mapped(t, nil, size)
	if held, most := Memory(); held < before+size-noise || most < held {
		t.Errorf("memory of its own does not count: %v held after %v, at most %v", held, before, most)
	}
}
