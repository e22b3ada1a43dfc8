package dataset

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
)

// A shard whose rows are drawn by lot from a data set of 1 GB on S3 is read, as an action reads its own, in the memory
// of the shard and a chunk: 256 chunks of 4 MB, which the server has once and answers for every name.
func TestALargeDataSetIsReadInBoundedMemory(t *testing.T) {
	const (
		chunks = 256
		most   = 160 << 20 // of which the shard is 32 MB; the collector lets a heap double
	)
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	backend := s3mem.New()
	if err := backend.CreateBucket("sets"); err != nil {
		t.Fatal(err)
	}
	inner := gofakes3.New(backend).Server()
	var all atomic.Pointer[[]Chunk]
	var chunk atomic.Pointer[[]byte]
	var read atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if there := all.Load(); there != nil && r.URL.Query().Get("list-type") == "2" {
			list(w, *there)
			return
		}
		if text := chunk.Load(); text != nil && strings.HasPrefix(path.Base(r.URL.Path), "train-") {
			read.Add(1)
			w.Header().Set("Content-Length", strconv.Itoa(len(*text)))
			w.Write(*text) //nolint:errcheck // a test's
			return
		}
		inner.ServeHTTP(w, r)
	}))
	defer server.Close()
	s, err := OpenStore(ctx, "s3://sets?region=x&endpoint="+server.URL+
		"&use_path_style=true&response_checksum_validation=when_required")
	if err != nil {
		t.Fatal(err)
	}
	side := 64
	one := Samples{Shape: []int{1, side, side}, U8: make([]byte, chunkBytes)}
	one.Labels = make([]int32, chunkBytes/(side*side))
	m, err := s.Add(ctx, Input{Name: "large", Classes: 2, Train: one}, false)
	if err != nil || len(m.Train.Chunks) != 1 {
		t.Fatalf("%d chunks, %v", len(m.Train.Chunks), err)
	}
	first := m.Train.Chunks[0]
	text, err := blobs.ReadAll(ctx, s.bucket, first.Key)
	if err != nil {
		t.Fatal(err)
	}
	chunk.Store(&text)
	for i := 1; i < chunks; i++ {
		c := first
		c.Key = chunkKey("large", "train", i)
		m.Train.Chunks = append(m.Train.Chunks, c)
	}
	m.Train.Rows = chunks * first.Rows
	all.Store(&m.Train.Chunks)
	if err := s.endAdd(ctx, &m); err != nil {
		t.Fatal(err)
	}
	one = Samples{}
	ref := disdel.DataRef{Name: "large", Checksum: m.Checksum()}
	before := held()
	rows := disdel.RowRange{Start: m.Train.Rows / 2, End: m.Train.Rows/2 + m.Train.Rows/32}
	shard, err := s.ReadTrain(ctx, ref, rows)
	if err != nil {
		t.Fatal(err)
	}
	if shard.Len() != rows.Len() || read.Load() != chunks {
		t.Fatalf("%d rows of %d, from %d chunks", shard.Len(), rows.Len(), read.Load())
	}
	if grown := held() - before; grown > most {
		t.Errorf("reading %d MB took %d MB", chunks*chunkBytes>>20, grown>>20)
	}
}

// list answers a listing of chunks.
func list(w io.Writer, chunks []Chunk) {
	fmt.Fprint(w, "<ListBucketResult><Name>sets</Name><IsTruncated>false</IsTruncated>")
	for _, c := range chunks {
		fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>%d</Size></Contents>", c.Key, c.Size)
	}
	fmt.Fprint(w, "</ListBucketResult>")
}

// held is the memory that the heap has ever had at once.
func held() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapSys)
}
