package blobs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// memory is a bucket that lasts as long as it is open.
type memory struct {
	mu   sync.Mutex
	data map[string]content
}

// content is what a key has, and since when.
type content struct {
	data    []byte
	written time.Time
}

func newMemory() *memory { return &memory{data: map[string]content{}} }

type bytesReader struct{ *bytes.Reader }

func (bytesReader) Close() error { return nil }

// get returns a key's content, which nobody changes.
func (m *memory) get(ctx context.Context, key string) (content, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.data[key]
	if !ok {
		return c, errors.Join(ctx.Err(), &fs.PathError{Op: "open", Path: key, Err: fs.ErrNotExist})
	}
	return c, ctx.Err()
}

func (m *memory) NewReader(ctx context.Context, key string) (Reader, error) {
	c, err := m.get(ctx, key)
	return bytesReader{bytes.NewReader(c.data)}, err
}

type memoryWriter struct {
	bytes.Buffer
	close func(data []byte) error
}

func (w *memoryWriter) Close() error { return w.close(w.Bytes()) }

func (m *memory) NewWriter(ctx context.Context, key string) (io.WriteCloser, error) {
	return &memoryWriter{close: func(data []byte) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if ctx.Err() == nil {
			m.data[key] = content{data, time.Now()}
		}
		return ctx.Err()
	}}, ctx.Err()
}

func (m *memory) Create(ctx context.Context, key string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.data[key]; ok {
		return &fs.PathError{Op: "create", Path: key, Err: fs.ErrExist}
	}
	m.data[key] = content{bytes.Clone(data), time.Now()}
	return ctx.Err()
}

func (m *memory) Size(ctx context.Context, key string) (int64, error) {
	c, err := m.get(ctx, key)
	return int64(len(c.data)), err
}

func (m *memory) Delete(ctx context.Context, key string) error {
	_, err := m.get(ctx, key)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.data, key)
	return err
}

// keys are those that begin with prefix, in order.
func (m *memory) keys(prefix string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.Sorted(maps.Keys(m.data))
	return slices.DeleteFunc(keys, func(key string) bool { return !strings.HasPrefix(key, prefix) })
}

func (m *memory) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for _, key := range m.keys(prefix) {
			c, err := m.get(ctx, key)
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed meanwhile
			}
			if !yield(Object{key, int64(len(c.data)), c.written}, err) || err != nil {
				return
			}
		}
	}
}

func (m *memory) Folders(ctx context.Context, prefix string) ([]string, error) {
	var out []string
	for _, key := range m.keys(prefix) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(key, prefix), "/"); ok {
			out = append(out, name)
		}
	}
	return slices.Compact(out), ctx.Err()
}
