package transcripts

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var reduce = flag.Bool("reduce", false, "write recorded.jsonl from the whole record")

// The whole record lies beside the project where it is developed.
func TestTheReducedTranscriptsAreWhatWasRecorded(t *testing.T) {
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "data", "openwhisk-transcripts.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the whole record is not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := Reduce(f)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := Write(&want, list); err != nil {
		t.Fatal(err)
	}
	if *reduce {
		if err := os.WriteFile("recorded.jsonl", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(recorded, want.Bytes()) {
		t.Error("recorded.jsonl is not what the whole record comes to: go test ./internal/transcripts -reduce")
	}
}

func TestTheTranscriptsCanBeRead(t *testing.T) {
	list, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i := range list {
		seen[list[i].Name] = true
		if list[i].Answer.Status == 0 || list[i].Method == "" || !strings.HasPrefix(list[i].Path, "/") {
			t.Errorf("%+v", list[i])
		}
		for _, name := range named.FindAllString(list[i].Path, -1) {
			if !seen[strings.Trim(name, "{}")] {
				t.Errorf("%s asks for an activation of %s, which did not come yet", list[i].Name, name)
			}
		}
	}
	if len(list) != 309 {
		t.Errorf("%d exchanges", len(list))
	}
	for name := range Stays {
		if !seen[name] {
			t.Errorf("%s stays, and was never recorded", name)
		}
	}
}

// A replay tells each way in which an answer can differ, and nothing of what differs from run to run.
func TestAReplayTellsWhatDiffers(t *testing.T) {
	body, status, kind := "", 200, "application/json"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	defer server.Close()
	there := Exchange{Name: "x", Method: "GET", Path: "/", Answer: Answer{
		Status: 200, Headers: map[string]string{"Content-Type": "application/json"},
		JSON: []byte(`{"a":1,"logs":["TIME stdout: b"],"start":"some"}`),
	}}
	for _, c := range []struct{ body, kind, want string }{
		{`{"a":1,"logs":["2026-01-01T00:00:00.1Z stdout: b"],"start":17}`, "application/json", ""},
		{`{"a":2,"logs":["2026-01-01T00:00:00.1Z stdout: b"],"start":17}`, "application/json", `"a"`},
		{`{"a":1,"logs":[],"start":17}`, "application/json", "stdout: b"},
		{`{"a":1,"logs":["TIME stdout: b"]}`, "application/json", "start"},
		{`{"a":1,"logs":["TIME stdout: b"],"start":1}`, "text/plain", "header Content-Type"},
		{`no JSON`, "application/json", "body"},
	} {
		body, kind = c.body, c.kind
		r := Replayer{URL: server.URL}
		got, err := r.Send(t.Context(), &there)
		if err != nil || (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s as %s: %q, %v, want %q", c.body, c.kind, got, err, c.want)
		}
	}
	status, body, kind = 404, `{"a":1,"logs":["TIME stdout: b"],"start":1}`, "application/json"
	r := Replayer{URL: server.URL}
	if got, err := r.Send(t.Context(), &there); err != nil || !strings.Contains(got, "status 404, there 200") {
		t.Errorf("%q, %v", got, err)
	}
}
