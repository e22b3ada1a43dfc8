package export_test

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/export"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// aHub serves a folder as a hub does. spoil changes what is sent of a file; true: it has sent everything itself.
type aHub struct {
	files map[string][]byte
	spoil func(w http.ResponseWriter, r *http.Request, name string, data []byte) bool
	sizes map[string]int64 // listed ones, if they lie
	asked atomic.Int64
	sent  atomic.Int64
	token string
}

func (h *aHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked.Add(1)
	if r.Header.Get("Authorization") != h.token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		if !strings.HasSuffix(r.URL.Path, "/ab/model/revision/main") &&
			!strings.HasSuffix(r.URL.Path, "refs/convert/parquet") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		var list []string
		for name, data := range h.files {
			size := int64(len(data))
			if lie, ok := h.sizes[name]; ok {
				size = lie
			}
			line := fmt.Sprintf(`{"rfilename":%q,"size":%d,"blobId":"%x"`, name, size,
				sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", size), data...)))
			if strings.HasSuffix(name, "safetensors") {
				line += fmt.Sprintf(`,"lfs":{"sha256":"%x","size":%d}`, sha256.Sum256(data), size)
			}
			list = append(list, line+"}")
		}
		fmt.Fprintf(w, `{"sha":%q,"siblings":[%s]}`, commit, strings.Join(list, ","))
		return
	}
	_, name, _ := strings.Cut(r.URL.Path, "/resolve/"+commit+"/")
	data, ok := h.files[name]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if h.spoil != nil && h.spoil(w, r, name, data) {
		return
	}
	http.ServeContent(&countedWriter{w, &h.sent}, r, name, time.Time{}, strings.NewReader(string(data)))
}

type countedWriter struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *countedWriter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

// serveHub serves testdata/hub/bert, a pickle and code.
func serveHub(t *testing.T) (*aHub, *export.Hub) {
	t.Helper()
	h := &aHub{files: map[string][]byte{"pytorch_model.bin": []byte("pickle"), "modeling.py": []byte("import os")}}
	for _, name := range []string{"config.json", "model.safetensors", "vocab.txt"} {
		data, err := os.ReadFile(filepath.Join("testdata", "hub", "bert", name))
		if err != nil {
			t.Fatal(err)
		}
		h.files[name] = data
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return h, &export.Hub{URL: server.URL, Say: t.Logf, Wait: time.Millisecond}
}

func model1(t *testing.T) export.HubRef {
	t.Helper()
	ref, err := export.ParseHubRef("hf://ab/model")
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// What is fetched is what the hub has, also if each connection is cut after some bytes: the rest is asked for, and no
// byte is sent twice. A second call sends no file. Neither pickles nor code are fetched.
func TestHubDownloadsGoOnAfterCuts(t *testing.T) {
	h, hub := serveHub(t)
	h.spoil = func(w http.ResponseWriter, r *http.Request, name string, data []byte) bool {
		var from int
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
		if len(data)-from <= 3000 {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(data)-from))
		if from > 0 {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(data)-1, len(data)))
			w.WriteHeader(http.StatusPartialContent)
		}
		h.sent.Add(3000)
		w.Write(data[from : from+3000])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	parent := t.TempDir()
	dir, got, err := hub.FetchModel(t.Context(), model1(t), parent)
	if err != nil || got != commit {
		t.Fatal(got, err)
	}
	total := 0
	for _, name := range []string{"config.json", "model.safetensors", "vocab.txt"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(data) != string(h.files[name]) {
			t.Errorf("%s differs: %v", name, err)
		}
		total += len(data)
	}
	if list, _ := os.ReadDir(dir); len(list) != 3 {
		t.Errorf("%d files, not 3: %v", len(list), list)
	}
	if h.sent.Load() != int64(total) {
		t.Errorf("%d bytes were sent for %d", h.sent.Load(), total)
	}
	before := h.sent.Load()
	if _, _, err := hub.FetchModel(t.Context(), model1(t), parent); err != nil || h.sent.Load() != before {
		t.Errorf("%d bytes more were sent: %v", h.sent.Load()-before, err)
	}
}

// A hub that lies is found out: about sizes, contents, ranges; and one that fails says so, with what to do.
func TestHubsThatLie(t *testing.T) {
	for name, c := range map[string]struct {
		change func(h *aHub)
		want   disdel.Kind
	}{
		"less than listed": {func(h *aHub) { h.sizes = map[string]int64{"model.safetensors": 20_000} }, disdel.Unavailable},
		"more than listed": {func(h *aHub) { h.sizes = map[string]int64{"model.safetensors": 100} }, disdel.Corrupt},
		"no end": {func(h *aHub) {
			h.spoil = func(w http.ResponseWriter, _ *http.Request, _ string, _ []byte) bool {
				for {
					if _, err := w.Write(make([]byte, 1<<16)); err != nil {
						return true
					}
				}
			}
		}, disdel.Corrupt},
		"more than a disk": {
			func(h *aHub) { h.sizes = map[string]int64{"model.safetensors": 1 << 49} }, disdel.NoSpace,
		},
		"negative": {func(h *aHub) { h.sizes = map[string]int64{"model.safetensors": -1} }, disdel.Corrupt},
		"other content": {func(h *aHub) {
			h.spoil = func(w http.ResponseWriter, _ *http.Request, _ string, data []byte) bool {
				w.Write(append([]byte("x"), data[1:]...))
				return true
			}
		}, disdel.Corrupt},
		"another part": {func(h *aHub) {
			h.spoil = func(w http.ResponseWriter, r *http.Request, _ string, data []byte) bool {
				w.Header().Set("Content-Range", "bytes 5-9/10")
				w.WriteHeader(http.StatusPartialContent)
				return true
			}
		}, disdel.Corrupt},
		"broken": {func(h *aHub) {
			h.spoil = func(w http.ResponseWriter, _ *http.Request, _ string, _ []byte) bool {
				w.WriteHeader(http.StatusBadGateway)
				return true
			}
		}, disdel.Unavailable},
		"only a pickle": {func(h *aHub) { delete(h.files, "model.safetensors") }, disdel.Invalid},
		"gated":         {func(h *aHub) { h.token = "Bearer secret" }, disdel.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, hub := serveHub(t)
			hub.Wait = time.Microsecond
			c.change(h)
			parent := t.TempDir()
			_, _, err := hub.FetchModel(t.Context(), model1(t), parent)
			if disdel.KindOf(err) != c.want {
				t.Errorf("%v, want %v", err, c.want)
			}
			filepath.Walk(parent, func(path string, info os.FileInfo, _ error) error {
				if info.Size() > 1<<20 {
					t.Errorf("%s has %d bytes", path, info.Size())
				}
				return nil
			})
		})
	}
	_, hub := serveHub(t)
	ref := model1(t)
	ref.Revision = "other"
	if _, _, err := hub.FetchModel(t.Context(), ref, t.TempDir()); disdel.KindOf(err) != disdel.NotFound {
		t.Errorf("a revision that is not there: %v", err)
	}
}

// The token goes to the hub, not to the host that a hub redirects to, and never in the clear over a network.
func TestTheHubsTokenStaysWithTheHub(t *testing.T) {
	h, hub := serveHub(t)
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token went to another host")
		}
		_, name, _ := strings.Cut(r.URL.Path, "/resolve/"+commit+"/")
		w.Write(h.files[name])
	}))
	defer files.Close()
	h.token, hub.Token = "Bearer secret", "secret"
	h.spoil = func(w http.ResponseWriter, r *http.Request, _ string, _ []byte) bool {
		http.Redirect(w, r, strings.Replace(files.URL, "127.0.0.1", "localhost", 1)+r.URL.Path, http.StatusFound)
		return true
	}
	if _, _, err := hub.FetchModel(t.Context(), model1(t), t.TempDir()); err != nil {
		t.Error(err)
	}
	far := &export.Hub{URL: "http://hub.example", Token: "secret", Say: t.Logf}
	_, _, err := far.FetchModel(t.Context(), model1(t), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "not sent over http://") {
		t.Errorf("over http://: %v", err)
	}
}

// A canceled download ends, and its file is not taken for a whole one.
func TestHubDownloadsEnd(t *testing.T) {
	h, hub := serveHub(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.spoil = func(w http.ResponseWriter, r *http.Request, name string, data []byte) bool {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		w.Write(data[:10])
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
		return true
	}
	parent := t.TempDir()
	if _, _, err := hub.FetchModel(ctx, model1(t), parent); err == nil {
		t.Error("a canceled download has no error")
	}
	whole, _ := filepath.Glob(filepath.Join(parent, "*", "*", "*.json"))
	if len(whole) > 0 {
		t.Errorf("%v are there", whole)
	}
}

// A Parquet file of a data set is found by its name, or as the only one.
func TestHubDataSets(t *testing.T) {
	h, hub := serveHub(t)
	h.files = map[string][]byte{"data/train-0.parquet": []byte("PAR1 a"), "README.md": []byte("#")}
	for text, want := range map[string]string{
		"hf://datasets/ab/model": "PAR1 a", "hf://datasets/ab/model/data/train-0.parquet": "PAR1 a",
		"hf://datasets/ab/model@~parquet/data/train-0.parquet": "PAR1 a", "hf://datasets/ab/model@main/other.parquet": "",
	} {
		ref, err := export.ParseHubRef(text)
		if err != nil {
			t.Fatal(err)
		}
		file, _, err := hub.FetchData(t.Context(), ref, t.TempDir())
		if want == "" {
			if disdel.KindOf(err) != disdel.Invalid {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got, err := io.ReadAll(f); string(got) != want {
			t.Errorf("%s: %q %v", text, got, err)
		}
	}
	for _, text := range []string{
		"hf://", "hf://a b", "hf://../x", "hf://a/../b", "hf://a/b@../c", "hf://a/b/c", "hf://datasets/a/b/../c",
		"http://a/b", "hf://datasets/a", "hf://a/b@",
	} {
		if _, err := export.ParseHubRef(text); disdel.KindOf(err) != disdel.Invalid && text != "hf://datasets/a" {
			t.Errorf("%s: %v", text, err)
		}
	}
}
