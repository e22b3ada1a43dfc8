package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// Who waits for a job that goes on is told to ask again, and not that something is wrong.
func TestWaitingForAJobThatGoesOn(t *testing.T) {
	h := newHouse(t, Config{})
	records, err := h.s.Tenant("ann").History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec := disdel.Record{
		APIVersion: disdel.APIVersion, ID: "job-01m801z0gz7e93d9pd3eb6phwc", Status: disdel.StatusRunning, Tenant: "ann",
	}
	if err := records.Save(t.Context(), &rec); err != nil {
		t.Fatal(err)
	}
	for _, timeout := range []string{"0s", "20ms"} { // 0s: it has passed before the job is found
		status, data := h.ask("ann read", "GET", "/api/v1/jobs/"+string(rec.ID)+"/wait?timeout="+timeout, nil)
		if status != http.StatusGatewayTimeout || !strings.Contains(string(data), `"timeout"`) {
			t.Errorf("%s: %d %s", timeout, status, data)
		}
	}
}
