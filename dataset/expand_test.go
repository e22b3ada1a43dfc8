package dataset

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
)

func packed(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	z.Write(data)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// bomb is an IDX file of a shape, followed by zeros for ever: members of gzip may be joined, so that it is quickly
// made.
func bomb(t testing.TB, shape []int) []byte {
	t.Helper()
	zeros := packed(t, make([]byte, 16<<20))
	return append(packed(t, idxFile(shape, nil)), bytes.Repeat(zeros, 100)...)
}

// within fails if f takes more memory, garbage included, than a packed file may cost before it is refused.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	const most = 256 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > most {
		t.Errorf("%s: %v were allocated, want at most %v", what, disdel.Bytes(took), disdel.Bytes(most))
	}
}

// A file of 1.6 MB that unpacks to 1.6 GB is refused before it does, whatever its header says and however it comes.
func TestPackedFilesThatUnpackToTooMuchAreRefused(t *testing.T) {
	for name, shape := range map[string][]int{
		"all of it": {100 << 14, 32, 32}, "the first image": {1, 4, 4},
		"labels": {1600 << 20},
	} {
		file := bomb(t, shape)
		onDisk := filepath.Join(t.TempDir(), "x.gz")
		if err := os.WriteFile(onDisk, file, 0o600); err != nil {
			t.Fatal(err)
		}
		for source, open := range map[string]func() io.Reader{
			"bytes":  func() io.Reader { return bytes.NewReader(file) },
			"stream": func() io.Reader { return struct{ io.Reader }{bytes.NewReader(file)} },
			"file": func() io.Reader {
				f, err := os.Open(onDisk)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { f.Close() })
				return f
			},
		} {
			within(t, name+" as "+source, func() {
				if _, err := ReadIDX(open()); !errors.Is(err, disdel.Corrupt) {
					t.Errorf("%s as %s: %v, want Corrupt", name, source, err)
				}
			})
		}
	}
	_, err := ReadIDX(struct{ io.Reader }{bytes.NewReader(bomb(t, []int{100 << 14, 32, 32}))})
	if e := disdel.AsError(err); !strings.Contains(e.Msg, "100 times its size") || !strings.Contains(e.Hint, "gunzip") {
		t.Errorf("%v, hint %q", err, e.Hint)
	}
	// Small files pack as well as they like, such as labels in order.
	x, err := ReadIDX(bytes.NewReader(packed(t, idxFile([]int{8 << 20}, make([]byte, 8<<20)))))
	if err != nil || len(x.Data) != 8<<20 {
		t.Errorf("labels in order: %v", err)
	}
}

// A header is not believed: memory comes with the bytes.
func TestHeadersTakeNoMemory(t *testing.T) {
	head := idxFile([]int{60000, 28, 28}, []byte{1, 2, 3})
	for name, r := range map[string]io.Reader{
		"cut": bytes.NewReader(head), "stream": struct{ io.Reader }{bytes.NewReader(head)},
		"packed":                  bytes.NewReader(packed(t, head)),
		"4 GB of nothing":         bytes.NewReader(idxFile([]int{1 << 22, 32, 32}, nil)),
		"beyond":                  bytes.NewReader(idxFile([]int{1 << 24, 32, 32}, nil)),
		"4 GB of nothing, stream": struct{ io.Reader }{bytes.NewReader(idxFile([]int{1<<22 - 1, 32, 32}, nil))},
		"floats":                  bytes.NewReader(append([]byte{0, 0, 13, 2}, idxFile([]int{1 << 20, 1 << 9}, nil)[4:]...)),
	} {
		within(t, name, func() {
			if _, err := ReadIDX(r); !errors.Is(err, disdel.Corrupt) {
				t.Errorf("%s: %v, want Corrupt", name, err)
			}
		})
	}
}

// Features of [rows features] and floats are read, and labels that are floats by accident.
func TestIDXFilesOfFeaturesAndFloats(t *testing.T) {
	floats := func(shape []int, values ...float32) []byte {
		out := idxFile(shape, nil)
		out[2] = idxFloats
		for _, v := range values {
			out = append(out, binary.BigEndian.AppendUint32(nil, math.Float32bits(v))...)
		}
		return out
	}
	x, err := ReadIDX(bytes.NewReader(floats([]int{2, 3}, 0.5, -1, 2, 3, 4, 1e6)))
	if err != nil {
		t.Fatal(err)
	}
	y, err := ReadIDX(bytes.NewReader(floats([]int{2}, 1, 0)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := FromIDX(x, y, CHW)
	if diff := cmp.Diff(Samples{Shape: []int{1, 1, 3}, F32: []float32{0.5, -1, 2, 3, 4, 1e6}, Labels: []int32{1, 0}},
		got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := FromIDX(x, IDX{Shape: []int{2}, Floats: []float32{0, 0.5}}, CHW); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("half a label: %v, want Corrupt", err)
	}
	nan := floats([]int{1, 1}, 0)
	nan[len(nan)-4], nan[len(nan)-3] = 0x7f, 0xc0
	if _, err := ReadIDX(bytes.NewReader(nan)); !errors.Is(err, disdel.Corrupt) {
		t.Errorf("NaN: %v, want Corrupt", err)
	}
}

// Rows of [height width channels] become rows of [channels height width].
func TestChannelsLastIsTurned(t *testing.T) {
	x := IDX{Shape: []int{2, 1, 2, 3}, Data: []byte{1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16}}
	got, err := FromIDX(x, IDX{Shape: []int{2}, Data: []byte{0, 1}}, HWC)
	want := Samples{Shape: []int{3, 1, 2}, U8: []byte{1, 4, 2, 5, 3, 6, 11, 14, 12, 15, 13, 16}, Labels: []int32{0, 1}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Whoever gives another file is told what it is.
func TestOtherFilesAreNamed(t *testing.T) {
	for want, head := range map[string]string{
		"it is a NumPy array": "\x93NUMPY\x01\x00", `it is text: it starts with "a,b,"`: "a,b,c\n1,2,3\n",
		"it is a zip archive": "PK\x03\x04...", "it is a picture": "\x89PNG\r\n",
		"it is an HDF5 file": "\x89HDF\r\n", "it holds 64-bit floats": "\x00\x00\x0e\x02....",
		"it has rank 5": "\x00\x00\x08\x05....", "it is empty": "", "it starts with 7f 45 4c 46": "\x7fELF",
	} {
		if _, err := ReadIDX(strings.NewReader(head)); !errors.Is(err, disdel.Corrupt) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want Corrupt with %q", head, err, want)
		}
	}
}

// serving is a recipe whose files come from a server that answers with handle.
func serving(t *testing.T, handle http.HandlerFunc) (Recipe, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	r, _ := FindRecipe("fashion-mnist")
	r.Folders, r.URL = nil, server.URL
	return r, server
}

// A download is read as far as its file is long, whatever the server sends, and refused with what is wrong.
func TestDownloadsAreBounded(t *testing.T) {
	bombs := bomb(t, []int{60000, 28, 28})
	whole := make([]byte, sizes[trainImages])
	for name, body := range map[string][]byte{
		"a bomb": bombs, "cut": packed(t, whole[:1000]), "gzip cut": packed(t, whole)[:500],
		"trailing": append(packed(t, whole), packed(t, []byte{0})...), "other": packed(t, whole), "nothing": {},
		"plain": whole,
	} {
		r, server := serving(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(body) })
		within(t, name, func() {
			if _, err := r.Fetch(ctx, server.Client()); !errors.Is(err, disdel.Corrupt) {
				t.Errorf("%s: %v, want Corrupt", name, err)
			}
		})
	}
	r, server := serving(t, func(w http.ResponseWriter, _ *http.Request) { // unpacked by the client itself
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(bombs)
	})
	within(t, "as encoding", func() {
		if _, err := r.Fetch(ctx, server.Client()); !errors.Is(err, disdel.Corrupt) {
			t.Errorf("as encoding: %v, want Corrupt", err)
		}
	})
}

// A server cannot lead the download to another host: not inside the user's network, and not with anything of the
// user's.
func TestDownloadsStayOnTheirHost(t *testing.T) {
	reached := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer other.Close()
	for name, where := range map[string]string{
		"another port": other.URL, "another name": strings.Replace(other.URL, "127.0.0.1", "localhost", 1),
		"with a password": strings.Replace(other.URL, "//", "//user:secret@", 1),
		"metadata":        "http://169.254.169.254/latest", "a file": "file:///etc/passwd",
	} {
		r, server := serving(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, where, http.StatusFound) })
		_, err := r.Fetch(ctx, server.Client())
		if !errors.Is(err, disdel.Unavailable) || !strings.Contains(err.Error(), "it redirects to another host") ||
			strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: %v, want Unavailable", name, err)
		}
	}
	if reached > 0 {
		t.Errorf("another host was asked %d times", reached)
	}
	asked := 0
	r, server := serving(t, func(w http.ResponseWriter,
		r *http.Request,
	) {
		asked++
		http.Redirect(w, r, "/again", http.StatusFound)
	})
	if _, err := r.Fetch(ctx, server.Client()); !errors.Is(err, disdel.Unavailable) || asked != maxRedirects {
		t.Errorf("%v after %d requests, want Unavailable after %d", err, asked, maxRedirects)
	}
}
