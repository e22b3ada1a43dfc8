package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/internal/test/race"
	"github.com/disdel/disdel/service"
)

func packed(t *testing.T, data []byte, times int) []byte {
	t.Helper()
	for range times {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		if _, err := z.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		data = out.Bytes()
	}
	return data
}

// TestFormsAreUnpackedOnce sends forms that are packed never, once and several times. Some are larger unpacked than an
// upload may be, and the rows of some pass the tenant's share. The server judges each form after unpacking it once.
func TestFormsAreUnpackedOnce(t *testing.T) {
	race.SkipSequential(t)
	h := newHouse(t, Config{MaxUpload: 32 << 20, Share: 64 * disdel.MB})
	idx := func(rows, columns int) []byte {
		head := []byte{0, 0, 8, 2, 0, 0, 0, byte(rows)}
		head = binary.BigEndian.AppendUint32(head, uint32(columns))
		return append(head, make([]byte, rows*columns)...)
	}
	labels := []byte{0, 0, 8, 1, 0, 0, 0, 4, 0, 1, 0, 1}
	for name, c := range map[string]struct {
		images []byte
		status int
		text   string
	}{
		"plain":    {idx(4, 9), 201, `"train"`},
		"packed":   {packed(t, idx(4, 9), 1), 201, `"train"`},
		"twice":    {packed(t, idx(4, 9), 2), 422, "packed with gzip more than once"},
		"thrice":   {packed(t, idx(4, 9), 3), 422, "packed with gzip more than once"},
		"bomb":     {packed(t, make([]byte, 100<<20), 1), 422, "too large for this server"},
		"bombs":    {packed(t, make([]byte, 100<<20), 2), 422, "packed with gzip more than once"},
		"large":    {idx(4, 9<<20), 422, "too large for this server"},
		"one row":  {packed(t, idx(4, 6_000_000), 1), 422, "of memory"}, // which a chunk holds several of
		"cut":      {packed(t, idx(4, 9), 1)[:20], 422, "EOF"},
		"too long": {append(idx(4, 9), 1), 422, "more follows"},
	} {
		status, data := h.form("a-"+strings.ReplaceAll(name, " ", "-"), nil,
			map[string][]byte{"images": c.images, "labels": labels})
		if status != c.status || !bytes.Contains(data, []byte(c.text)) {
			t.Errorf("%s: %d %.300s", name, status, data)
		}
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		for _, f := range left {
			if strings.HasPrefix(f.Name(), "disdel-upload-") {
				t.Errorf("left: %s", f.Name())
			}
		}
	}
}

// TestALookAtARecordTakesItsSize opens a large record of an ended job again and again, until there is no more room.
// Each reader's memory is counted by the size of the record, and all of it is given back.
func TestALookAtARecordTakesItsSize(t *testing.T) {
	h := newHouse(t, Config{})
	rec := h.submitted()
	if status, data := h.ask("ann read", "GET", "/api/v1/jobs/"+string(rec.ID)+"/wait?timeout=5m", nil); status != 200 {
		t.Fatalf("%d %s", status, data)
	}
	own := h.s.Tenant("ann")
	all, err := own.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if rec, err = all.Get(t.Context(), rec.ID); err != nil {
		t.Fatal(err)
	}
	letters := make([]byte, 1<<20)
	rng := rand.New(rand.NewPCG(31, 4))
	for i := range letters {
		letters[i] = byte('a' + rng.IntN(26))
	}
	rec.Origin = &disdel.Origin{Command: string(letters)}
	if err := all.Save(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	s := newServer(t.Context(), Config{Service: h.s})
	s.budget.patience = time.Millisecond
	var frees []func()
	for range 100 {
		run, free, err := s.watch(t.Context(), own, string(rec.ID))
		var none *full
		if errors.As(err, &none) {
			break
		}
		if err != nil || run.Stored() < 1<<20 {
			t.Fatalf("%v, %v stored", err, run.Stored())
		}
		frees = append(frees, free)
		if held := s.budget.tenants[own].bytes; held < int64(len(frees))*6<<20 {
			t.Fatalf("%d looks hold %d bytes", len(frees), held)
		}
	}
	if n := len(frees); n < 2 || n > defaultShare/(6<<20) {
		t.Errorf("%d looks at once", n)
	}
	for _, free := range frees {
		free()
	}
	if len(s.budget.tenants) != 0 {
		t.Error("something is held")
	}
}

// TestATenantHasABoundedNumberOfUnfinishedJobs submits as many long jobs as a tenant may have. The server answers the
// next one with 429, but takes another tenant's. A job that ends makes room.
func TestATenantHasABoundedNumberOfUnfinishedJobs(t *testing.T) {
	h := houseOf(t, Config{}, service.Config{Home: t.TempDir(), TakeOver: true, MostUnfinished: 1})
	first := h.submitted("training.epochs=1000")
	s := apitypes.Submission{File: job}
	status, data := h.ask("ann submit", "POST", "/api/v1/jobs", s)
	if status != 429 || !bytes.Contains(data, []byte("1 jobs of ann")) {
		t.Errorf("one too many: %d %s", status, data)
	}
	if status, data := h.ask("bob submit", "POST", "/api/v1/jobs", s); status == 429 {
		t.Errorf("another tenant: %d %s", status, data)
	}
	h.ask("ann submit", "POST", "/api/v1/jobs/"+string(first.ID)+"/cancel", nil)
	h.ask("ann read", "GET", "/api/v1/jobs/"+string(first.ID)+"/wait?timeout=1m", nil)
	for {
		status, data := h.ask("ann submit", "POST", "/api/v1/jobs", s)
		if status == 201 {
			break
		}
		if status != 429 || t.Context().Err() != nil { // the wait ends a moment before the job leaves
			t.Fatalf("after one has ended: %d %s", status, data)
		}
	}
}

// piped serves a handler at one connection in memory, in the time of a bubble.
func piped(t *testing.T, handler http.Handler) (client net.Conn, end func()) {
	t.Helper()
	client, server := net.Pipe()
	l := &oneConn{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conns <- server
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: readWithin}
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(l) //nolint:errcheck // it ends with the test
	}()
	return client, func() {
		client.Close()
		srv.Close()
		<-done
		time.Sleep(time.Minute) // of the bubble: what still sleeps ends
	}
}

type oneConn struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error {
	close(l.closed)
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// TestAnUploadGoesOn sends bodies that stop, and one that is too slow for ever. The server gives up each in its time.
// It accepts a body with shorter pauses.
func TestAnUploadGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		pause  time.Duration // between two bytes
		bytes  int
		within time.Duration // from the first byte on
		ok     bool
	}{
		"whole":  {quietFor - time.Second, 5, 5 * quietFor, true},
		"quiet":  {quietFor + time.Second, 5, quietFor + time.Second, false},
		"slowly": {quietFor / 2, 1 << 20, uploadWithin + quietFor, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := make(chan error, 1)
				client, end := piped(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					out := http.NewResponseController(w)
					_, err := io.Copy(io.Discard, &steady{ReadCloser: r.Body, out: out, until: time.Now().Add(uploadWithin)})
					got <- err
				}))
				defer end()
				began := time.Now()
				go io.Copy(io.Discard, client) //nolint:errcheck // it ends with the connection
				go func() {
					fmt.Fprintf(client, "PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", c.bytes)
					for range c.bytes {
						if _, err := client.Write([]byte("x")); err != nil {
							return
						}
						time.Sleep(c.pause)
					}
				}()
				err := <-got
				if took := time.Since(began); (err == nil) != c.ok || took > c.within {
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}

// TestAnAnswerWaitsForItsReader sends a long answer to a client that reads one byte and then nothing. The server gives
// it up in its time.
func TestAnAnswerWaitsForItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan error, 1)
		client, end := piped(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			to := pieces{w, http.NewResponseController(w)}
			_, err := io.Copy(to, strings.NewReader(strings.Repeat("x", 1<<20)))
			got <- err
		}))
		defer end()
		began := time.Now()
		io.WriteString(client, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") //nolint:errcheck // see below
		client.Read(make([]byte, 1))                                        //nolint:errcheck // see below
		if err := <-got; err == nil || time.Since(began) > slow+time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// TestListsHaveEachOnce compares the lists that are sent piece by piece with the stored items.
func TestListsHaveEachOnce(t *testing.T) {
	h := newHouse(t, Config{})
	for _, path := range []string{"models", "datasets"} {
		if _, data := h.ask("bob read", "GET", "/api/v1/"+path, nil); string(bytes.TrimSpace(data)) != `{"`+path+`":[]}` {
			t.Errorf("nothing: %s", data)
		}
	}
	ctx := context.Background()
	if err := h.s.Tenant("ann").AddDigits(ctx); err != nil {
		t.Fatal(err)
	}
	labels := []byte{0, 0, 8, 1, 0, 0, 0, 4, 0, 1, 0, 1}
	images := append([]byte{0, 0, 8, 2, 0, 0, 0, 4, 0, 0, 0, 2}, 1, 2, 3, 4, 5, 6, 7, 8)
	for _, name := range []string{"a-b", "a", "z"} {
		if status, data := h.form(name, nil, map[string][]byte{"images": images, "labels": labels}); status != 201 {
			t.Fatalf("%d %s", status, data)
		}
	}
	var out apitypes.DatasetList
	_, data := h.ask("ann read", "GET", "/api/v1/datasets", nil)
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	var names []string
	for _, d := range out.Datasets {
		names = append(names, d.Name)
	}
	if got := strings.Join(names, " "); got != "a a-b digits z" {
		t.Errorf("%s", got)
	}
}
