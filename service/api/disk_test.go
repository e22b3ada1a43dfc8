package api

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/tenant"
)

// Every request that would store something is refused where the tenant's disk quota has no room for it.
func TestEveryWriterKeepsToTheDiskQuota(t *testing.T) {
	h := newHouse(t, Config{})
	canceled := h.submitted("training.epochs=1000")
	at := "/api/v1/jobs/" + string(canceled.ID)
	h.ask("ann submit", "POST", at+"/cancel", nil)
	if status, data := h.ask("ann read", "GET", at+"/wait?timeout=5m", nil); status != 200 {
		t.Fatalf("%d %s", status, data)
	}
	if _, err := h.s.Tenants().Create(t.Context(), "ann", tenant.RoleRead, &scheduler.Quota{Disk: disdel.KB}); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 4096)
	for name, send := range map[string]func() (int, []byte){
		"a job": func() (int, []byte) {
			return h.ask("ann submit", "POST", "/api/v1/jobs", apitypes.Submission{File: job})
		},
		"a resume": func() (int, []byte) { return h.ask("ann submit", "POST", at+"/resume", nil) },
		"a form": func() (int, []byte) {
			images := binary.BigEndian.AppendUint32([]byte{0, 0, 8, 2, 0, 0, 0, 4}, 400)
			labels := []byte{0, 0, 8, 1, 0, 0, 0, 4, 0, 1, 0, 1}
			return h.form("a-form", nil, map[string][]byte{"images": append(images, make([]byte, 1600)...), "labels": labels})
		},
		"rows": func() (int, []byte) {
			return h.ask("ann admin", "PUT", "/api/v1/datasets/rows", long, "Content-Type", dataset.RowsType)
		},
		"weights": func() (int, []byte) {
			sum := "sha256:" + strings.Repeat("0", 64)
			return h.ask("ann submit", "PUT", "/api/v1/weights/"+sum, long, "Content-Type", "application/octet-stream")
		},
		"a public data set": func() (int, []byte) {
			digits := apitypes.Source{Source: "digits", Overwrite: true}
			return h.ask("ann admin", "POST", "/api/v1/datasets", digits)
		},
	} {
		status, data := send()
		if status != 422 || !bytes.Contains(data, []byte("use disk")) {
			t.Errorf("%s: %d %.300s", name, status, data)
		}
	}
	var rec disdel.Record
	if _, data := h.ask("ann read", "GET", at, nil); json.Unmarshal(data, &rec) != nil ||
		rec.Status != disdel.StatusCanceled {
		t.Errorf("the job is %v after a resume that was refused", rec.Status)
	}
}
