// Package histories sets up large histories for programs that measure: on the embedded server, and on one that others
// wrote.
package histories

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
)

// History is a server of this process's, and the history on it.
type History struct {
	*history.Store
	URL  string
	stop func() error
}

// Close ends both.
func (h *History) Close() error { return errors.Join(h.Store.Close(), h.stop()) }

// Embedded serves the file history.db of a folder, as a home has it.
func Embedded(ctx context.Context, folder string) (*History, error) {
	server, err := couchlite.Open(filepath.Join(folder, "history.db"), couchlite.Config{})
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		return nil, err
	}
	return open(ctx, server.URL(), server.Close)
}

// startWithin bounds the start of another program.
const startWithin = time.Minute

// PouchDB runs a pouchdb-server that keeps its documents in a folder.
func PouchDB(ctx context.Context, program, folder string) (*History, error) {
	program, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "--port", port, "--host", "127.0.0.1", "--dir", folder, "--no-stdout-logs")
	cmd.Dir, cmd.Stderr = folder, os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop := func() error {
		err := cmd.Process.Kill()
		cmd.Wait() //nolint:errcheck // killed
		return err
	}
	for begun := time.Now(); ; {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			break
		}
		if time.Since(begun) > startWithin {
			return nil, errors.Join(fmt.Errorf("%s did not start: %w", program, err), stop())
		}
		time.Sleep(20 * time.Millisecond) // another process, which has not opened its port yet
	}
	return open(ctx, "http://"+address, stop)
}

func open(ctx context.Context, address string, stop func() error) (*History, error) {
	h, err := history.Open(ctx, history.Config{URL: address, Logger: logrus.New()})
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return &History{h, address, stop}, nil
}

// atOnce is how many records go in one request.
const atOnce = 200

// Fill writes n records, the oldest first.
func (h *History) Fill(n int, record func(i int) disdel.Record) error {
	for from := 0; from < n; from += atOnce {
		var docs []any
		for i := from; i < min(from+atOnce, n); i++ {
			r := record(i)
			docs = append(docs, struct {
				Key disdel.JobID `json:"_id"`
				disdel.Record
			}{r.ID, r})
		}
		body, err := json.Marshal(map[string]any{"docs": docs})
		if err != nil {
			return err
		}
		res, err := http.Post(h.URL+"/"+history.Database+"/_bulk_docs", "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		res.Body.Close()
		if res.StatusCode != http.StatusCreated {
			return errors.New("writing records: " + res.Status)
		}
	}
	return nil
}

// Settle waits until the view of package history has all that was written, for which a history itself does not wait. A
// server without views has none to wait for.
func (h *History) Settle(ctx context.Context) error {
	address := h.URL + "/" + history.Database + "/_design/disdel-view/_view/records?limit=1"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// NewID is the id of a job that begins at a time.
func NewID(at time.Time) disdel.JobID {
	id := ulid.MustNew(ulid.Timestamp(at), ulid.DefaultEntropy())
	return disdel.JobID("job-" + strings.ToLower(id.String()))
}
