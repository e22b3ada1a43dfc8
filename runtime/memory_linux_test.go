package runtime

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/race"
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

// A training's heap is at the limit of the collector, which runs once for each look that makes garbage.
func TestALookAtMemoryAllocatesNothing(t *testing.T) {
	race.SkipMemory(t)
	if n := testing.AllocsPerRun(100, func() { Memory() }); n != 0 {
		t.Errorf("a look allocates %v times", n)
	}
	own, same := ownMemory(), memoryOf("self")
	if own.anonymous == 0 || own.peak < own.anonymous || same.peak < own.peak {
		t.Errorf("%v, and %v by its name", own, same)
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

// What a process has started counts, and what both share counts once.
func TestMemoryCountsChildren(t *testing.T) {
	const size, noise = 64 << 20, 16 * disdel.MB
	fd, err := unix.MemfdCreate("shared", 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "shared")
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	both, err := syscall.Mmap(fd, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(both) //nolint:errcheck // the process ends soon
	for i := 0; i < size; i += 4096 {
		both[i] = 1
	}
	before, _ := Memory()
	child := exec.Command(os.Args[0], "-test.run=^TestMemoryOfAChild$") // it maps the file, and as much of its own
	child.Env, child.ExtraFiles = append(os.Environ(), "DISDEL_TEST_CHILD=1"), []*os.File{file}
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	held, peak := Memory()
	in.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if held < before+size || held > before+size+2*noise || peak < held {
		t.Errorf("%v held and at most %v with a child of %v, %v before it", held, peak, disdel.Bytes(size), before)
	}
	if after, _ := Memory(); after > before+noise {
		t.Errorf("%v held after the child's end, %v before", after, before)
	}
}

// It is the child of TestMemoryCountsChildren.
func TestMemoryOfAChild(t *testing.T) {
	const size, file = 64 << 20, 3
	if os.Getenv("DISDEL_TEST_CHILD") == "" {
		t.Skip("only as a child")
	}
	shared, err := syscall.Mmap(file, 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil || bytes.Count(shared, []byte{1}) == 0 {
		t.Fatal("the file is not shared", err)
	}
	mapped(t, nil, size)
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin) //nolint:errcheck // it ends with its input
}
