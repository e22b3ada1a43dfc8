package platform

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
)

// A line tells what a client was answered and the id that the client was given with it, and nothing of the query.
func TestARequestsLine(t *testing.T) {
	log, hook := test.NewNullLogger()
	h := LogRequests(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-ID", "tid")
		w.WriteHeader(http.StatusTeapot)
	}), log)
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/api/v1?password=secret", nil))
	line := hook.LastEntry()
	if line == nil || line.Level != logrus.InfoLevel {
		t.Fatalf("%+v", line)
	}
	for name, want := range map[string]any{"method": "POST", "path": "/api/v1", "status": 418, "transaction": "tid"} {
		if line.Data[name] != want {
			t.Errorf("%s: %v, want %v", name, line.Data[name], want)
		}
	}
	if line.Data["duration"] == nil {
		t.Error("no duration")
	}
}
