package boltcheck

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// bbolt's file format: pages of one size, each with a head of 16 bytes (its number, what it is, how many elements, how
// many pages it goes on for). The first two pages are the file's heads, written in turn; the one with the higher number
// of a transaction counts.
const (
	pageHead    = 16
	elementSize = 16
	metaSize    = 64
	magic       = 0xED0CDAED
	branchPage  = 0x01
	leafPage    = 0x02
	bucketLeaf  = 0x01
	maxDepth    = 32
)

// meta is a head of the file.
type meta struct {
	pageSize, root, freelist, pages, tx uint64 // pages: how many the file has
}

// ErrBusy says that another process writes to a file for too long.
var ErrBusy = errors.New("another process holds the file for too long")

// Check checks the bbolt file at path before it is mapped: both heads, the length of the file, and the inner pages of
// its trees. It waits while another process writes. It returns ErrBusy after wait, Corrupt with the file's name, and
// nil for a missing or empty file.
func Check(path string, wait time.Duration) error { return inspect(path, wait, check) }

// Create creates the file at path if it is missing. write writes it under another name first, so that the file is never
// incomplete. If another process creates the file meanwhile, that one stays.
func Create(path string, write func(path string) error) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	written := filepath.Join(dir, "new")
	if err := write(written); err != nil {
		return err
	}
	if err := os.Link(written, path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// inspect looks at the file at path, if there is one, while nobody writes to it.
func inspect(path string, wait time.Duration, look func(*os.File) error) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() // and its lock with it
	if err := share(f, wait); err != nil {
		return err
	}
	return Guard(path, func() error { return look(f) })
}

// lockPause is the time between two looks at a lock that another process has.
const lockPause = 5 * time.Millisecond

// share locks a file as bbolt's readers do.
func share(f *os.File, wait time.Duration) error {
	for until := time.Now().Add(wait); ; time.Sleep(lockPause) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		switch {
		case err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return err
		case time.Now().After(until):
			return ErrBusy
		}
	}
}

func check(f *os.File) error {
	t, err := open(f)
	if t == nil || err != nil {
		return err
	}
	return t.all()
}

// open looks at the file's heads and length. An empty file has no tree.
func open(f *os.File) (*tree, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return nil, err
	}
	m, err := heads(f, info.Size())
	if err != nil {
		return nil, err
	}
	if uint64(info.Size()) < m.pages*m.pageSize {
		return nil, damage("it has %d bytes, and %d were written", info.Size(), m.pages*m.pageSize)
	}
	t := &tree{file: f, meta: m, seen: make([]bool, m.pages)}
	t.leaf = func(id uint64, _, _ []byte) error { return t.visit(id) } // there are as many as values, and those have seals
	return t, nil
}

// heads reads both heads of the file. That one is damaged is no small matter: the other one leads to what was stored
// before.
func heads(f io.ReaderAt, size int64) (meta, error) {
	first, err := readMeta(f, 0)
	if err != nil {
		return meta{}, damage("its first page is no head of a history or platform file")
	}
	second, err := readMeta(f, int64(first.pageSize))
	if err != nil {
		return meta{}, damage("its second page is no head of a history or platform file")
	}
	if second.tx > first.tx {
		first, second = second, first
	}
	if first.tx != second.tx+1 || first.pageSize != second.pageSize {
		return meta{}, damage("its two heads are not of one file")
	}
	if first.pages > uint64(size)/first.pageSize+1<<20 {
		return meta{}, damage("it has %d bytes, and %d pages were written", size, first.pages)
	}
	return first, nil
}

var errNoHead = errors.New("no head")

func readMeta(f io.ReaderAt, at int64) (meta, error) {
	var b [pageHead + metaSize]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		return meta{}, err
	}
	v, le := b[pageHead:], binary.LittleEndian
	h := fnv.New64a()
	h.Write(v[:56])
	m := meta{uint64(le.Uint32(v[8:])), le.Uint64(v[16:]), le.Uint64(v[32:]), le.Uint64(v[40:]), le.Uint64(v[48:])}
	if le.Uint32(v) != magic || h.Sum64() != le.Uint64(v[56:]) || m.pageSize < 512 || m.pageSize > 1<<24 {
		return meta{}, errNoHead
	}
	return m, nil
}

// tree walks the inner pages of a file's trees.
type tree struct {
	file io.ReaderAt
	meta meta
	seen []bool
	leaf func(id uint64, low, high []byte) error // looks at a leaf below the root of a bucket
}

type page struct {
	flags uint16
	count int
	data  []byte
}

// page reads a page, all that it goes on for. A page is in one place of one tree.
func (t *tree) page(id uint64) (page, error) {
	if err := t.visit(id); err != nil {
		return page{}, err
	}
	data := make([]byte, t.meta.pageSize)
	if _, err := t.file.ReadAt(data, int64(id*t.meta.pageSize)); err != nil {
		return page{}, err
	}
	le := binary.LittleEndian
	p := page{flags: le.Uint16(data[8:]), count: int(le.Uint16(data[10:]))}
	more := uint64(le.Uint32(data[12:]))
	if le.Uint64(data) != id || p.flags != branchPage && p.flags != leafPage || more >= t.meta.pages-id {
		return page{}, damage("page %d is not what it was", id)
	}
	if more > 0 {
		data = append(data, make([]byte, more*t.meta.pageSize)...)
		if _, err := t.file.ReadAt(data, int64(id*t.meta.pageSize)); err != nil {
			return page{}, err
		}
	}
	if pageHead+p.count*elementSize > len(data) {
		return page{}, damage("page %d has %d elements", id, p.count)
	}
	p.data = data
	return p, nil
}

func (t *tree) visit(id uint64) error {
	if id < 2 || id >= t.meta.pages {
		return damage("it leads to page %d of %d", id, t.meta.pages)
	}
	if t.seen[id] {
		return damage("two ways lead to page %d", id)
	}
	t.seen[id] = true
	return nil
}

// slice is size bytes of a page, from so far behind the start of element i.
func (p page) slice(i int, from uint64, size uint32) ([]byte, error) {
	start := uint64(pageHead+i*elementSize) + from
	if start+uint64(size) > uint64(len(p.data)) {
		return nil, damage("an element lies outside of its page")
	}
	return p.data[start : start+uint64(size)], nil
}

// child is the key and the page of an element of a branch.
func (p page) child(i int) (key []byte, id uint64, err error) {
	e, le := p.data[pageHead+i*elementSize:], binary.LittleEndian
	key, err = p.slice(i, uint64(le.Uint32(e)), le.Uint32(e[4:]))
	return key, le.Uint64(e[8:]), err
}

// all walks the tree of buckets, and that of every bucket.
func (t *tree) all() error { return t.buckets(t.meta.root, maxDepth) }

func (t *tree) buckets(id uint64, depth int) error {
	p, err := t.page(id)
	if err != nil {
		return err
	}
	if depth == 0 {
		return damage("its pages lead in circles")
	}
	for i := range p.count {
		if p.flags == branchPage {
			_, next, err := p.child(i)
			if err == nil {
				err = t.buckets(next, depth-1)
			}
			if err != nil {
				return err
			}
			continue
		}
		if err := t.bucket(p, i); err != nil {
			return err
		}
	}
	return nil
}

// bucket walks the bucket that element i of a leaf is the head of. A small one lies in the leaf itself.
func (t *tree) bucket(p page, i int) error {
	e, le := p.data[pageHead+i*elementSize:], binary.LittleEndian
	if le.Uint32(e)&bucketLeaf == 0 {
		return nil
	}
	value, err := p.slice(i, uint64(le.Uint32(e[4:]))+uint64(le.Uint32(e[8:])), le.Uint32(e[12:]))
	if err != nil {
		return err
	}
	if len(value) < 16 {
		return damage("the head of a bucket is cut short")
	}
	root := le.Uint64(value)
	if root == 0 {
		return nil
	}
	depth, err := t.depth(root)
	if err != nil {
		return err
	}
	return t.walk(root, depth, nil, nil)
}

// depth is how many branches lie above the leaves of a tree, which is the same everywhere in it.
func (t *tree) depth(root uint64) (int, error) {
	for depth := range maxDepth {
		if root < 2 || root >= t.meta.pages {
			return 0, damage("it leads to page %d of %d", root, t.meta.pages)
		}
		var b [pageHead + elementSize]byte
		if _, err := t.file.ReadAt(b[:], int64(root*t.meta.pageSize)); err != nil {
			return 0, err
		}
		switch flags := binary.LittleEndian.Uint16(b[8:]); flags {
		case leafPage:
			return depth, nil
		case branchPage:
			root = binary.LittleEndian.Uint64(b[pageHead+8:])
		default:
			return 0, damage("page %d is not what it was", root)
		}
	}
	return 0, damage("its pages lead in circles")
}

// walk goes down the branches of a bucket to its leaves. low is the least key below, high what is above all of them;
// nil: any.
func (t *tree) walk(id uint64, depth int, low, high []byte) error {
	if depth == 0 {
		return t.leaf(id, low, high)
	}
	p, err := t.page(id)
	if err != nil {
		return err
	}
	if p.flags != branchPage || p.count == 0 {
		return damage("page %d is not what it was", id)
	}
	before, next, err := p.child(0)
	for i := range p.count {
		if err != nil {
			return err
		}
		key, child := before, next
		above := high
		if i+1 < p.count {
			if before, next, err = p.child(i + 1); err != nil {
				return err
			}
			above = before
			if bytes.Compare(key, above) >= 0 {
				return damage("the keys of page %d are not in order", id)
			}
		}
		if bytes.Compare(low, key) > 0 {
			return damage("the keys of page %d are not in order", id)
		}
		if err := t.walk(child, depth-1, key, above); err != nil {
			return err
		}
	}
	return nil
}
