package simulate

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/disdel/disdel/internal/blobs"
)

var errBlobs = errors.New("the storage does not answer")

// shelf returns a context in which this process opens the models of its world with their faults.
func (p *process) shelf(ctx context.Context) context.Context {
	return blobs.WithWrapper(ctx, func(address string, b blobs.Bucket) blobs.Bucket {
		if address != p.world.models {
			return b
		}
		return bucket{b, p}
	})
}

// bucket implements blobs.Bucket: the models and checkpoints of a world, as a process reaches them. A dead process
// reaches nothing. No call takes time, because some of its callers hold a lock.
type bucket struct {
	blobs.Bucket
	of *process
}

// begin begins a call. The process may die before it.
func (b bucket) begin(what, key string) (done func(), err error) {
	w, name := b.of.world.weather, b.of.name+": "+what+" "+key
	done = b.of.call("blob " + what)
	if !b.of.lasts && w.strikes(blobKills, name) {
		b.of.kill()
	}
	switch {
	case !b.of.alive():
		return done, errKilled
	case w.strikes(blobFails, name):
		return done, errBlobs
	}
	return done, nil
}

// end ends a call that has had its effect. Its answer may get lost, and the process may die.
func (b bucket) end(what, key string, done func(), err error) error {
	w, name := b.of.world.weather, b.of.name+": "+what+" "+key+", answer"
	done()
	if !b.of.lasts && w.strikes(blobKills, name) {
		b.of.kill()
	}
	switch {
	case !b.of.alive():
		return errKilled
	case err == nil && w.strikes(blobMute, name):
		return errBlobs
	}
	return err
}

// NewReader implements blobs.Bucket.
func (b bucket) NewReader(ctx context.Context, key string) (blobs.Reader, error) {
	if _, err := b.begin("read", key); err != nil {
		return nil, err
	}
	return b.Bucket.NewReader(ctx, key)
}

// NewWriter implements blobs.Bucket.
func (b bucket) NewWriter(ctx context.Context, key string) (io.WriteCloser, error) {
	done, err := b.begin("write", key)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	w, err := b.Bucket.NewWriter(ctx, key)
	if err != nil {
		stop()
		return nil, err
	}
	return &blobWriter{w, b, key, stop, done, b.of.world.weather.strikes(blobHalf, b.of.name+": "+key)}, nil
}

// blobWriter is a write of a key, which may break in the middle.
type blobWriter struct {
	io.WriteCloser
	bucket bucket
	key    string
	stop   func() // what was written is given up
	done   func()
	breaks bool
}

// Write implements io.Writer.
func (w *blobWriter) Write(data []byte) (int, error) {
	if !w.bucket.of.alive() {
		return 0, errKilled
	}
	if !w.breaks {
		return w.WriteCloser.Write(data)
	}
	n, err := w.WriteCloser.Write(data[:len(data)/2])
	w.stop()
	return n, errors.Join(err, errBlobs)
}

// Close implements io.Closer.
func (w *blobWriter) Close() error {
	if !w.bucket.of.alive() {
		w.stop()
	}
	err := w.WriteCloser.Close()
	w.stop()
	return w.bucket.end("write", w.key, w.done, err)
}

// Create implements blobs.Bucket.
func (b bucket) Create(ctx context.Context, key string, data []byte) error {
	done, err := b.begin("write", key)
	if err != nil {
		return err
	}
	return b.end("write", key, done, b.Bucket.Create(ctx, key, data))
}

// Size implements blobs.Bucket.
func (b bucket) Size(ctx context.Context, key string) (int64, error) {
	if _, err := b.begin("read", key); err != nil {
		return 0, err
	}
	return b.Bucket.Size(ctx, key)
}

// Delete implements blobs.Bucket.
func (b bucket) Delete(ctx context.Context, key string) error {
	done, err := b.begin("delete", key)
	if err != nil {
		return err
	}
	return b.end("delete", key, done, b.Bucket.Delete(ctx, key))
}

// List implements blobs.Bucket.
func (b bucket) List(ctx context.Context, prefix string) iter.Seq2[blobs.Object, error] {
	if _, err := b.begin("read", prefix); err != nil {
		return func(yield func(blobs.Object, error) bool) { yield(blobs.Object{}, err) }
	}
	return b.Bucket.List(ctx, prefix)
}

// Folders implements blobs.Bucket.
func (b bucket) Folders(ctx context.Context, prefix string) ([]string, error) {
	if _, err := b.begin("read", prefix); err != nil {
		return nil, err
	}
	return b.Bucket.Folders(ctx, prefix)
}

// leftFiles returns what is left below the models' folder that only a running job needs.
func (w *world) leftFiles() (out []string) {
	root := strings.TrimPrefix(w.models, "file://")
	//nolint:errcheck // a missing folder has no files
	filepath.WalkDir(filepath.Join(root, "checkpoints"), func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			out = append(out, strings.TrimPrefix(path, root))
		}
		return nil
	})
	return out
}
