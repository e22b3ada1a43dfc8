package platform

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

func start(t *testing.T, change func(*Config)) *Platform {
	t.Helper()
	cfg := DefaultConfig()
	cfg.TempDir = t.TempDir()
	cfg.Limits.InvocationsPerMinute = 10000
	cfg.Kinds = map[string]Kind{disdel.RuntimeKind: {Command: []string{os.Args[0], "serve", "{listen}"}}}
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	fences := p.limiter
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
		if left, _ := os.ReadDir(cfg.TempDir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		for _, base := range fences.folders() {
			if _, err := os.Stat(base); err == nil {
				t.Errorf("a group left behind: %s", base)
			}
		}
	})
	return p
}

// call makes a request and returns status and body.
func call(t *testing.T, p *Platform, method, path, body string) (int, map[string]any) {
	t.Helper()
	req, _ := http.NewRequest(method, p.URL()+path, strings.NewReader(body))
	user, key, _ := strings.Cut(p.AuthKey(), ":")
	req.SetBasicAuth(user, key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, _ := io.ReadAll(res.Body)
	var out map[string]any
	json.Unmarshal(data, &out)
	if out == nil {
		out = map[string]any{"text": string(data)}
	}
	if len(res.Header.Get("X-Request-ID")) != 32 {
		t.Errorf("%s %s: X-Request-ID %q", method, path, res.Header.Get("X-Request-ID"))
	}
	return res.StatusCode, out
}

const ns = "/api/v1/namespaces/_"

// newTestAction creates an action whose container behaves as main.
func newTestAction(t *testing.T, p *Platform, main string, timeout, memory int) {
	t.Helper()
	body := fmt.Sprintf(`{"exec":{"kind":%q,"code":"x","main":%q},"limits":{"timeout":%d,"memory":%d}}`,
		disdel.RuntimeKind, main, timeout, memory)
	if status, got := call(t, p, "PUT", ns+"/actions/"+main+"?overwrite=true", body); status != 200 {
		t.Fatalf("create %s: %d %v", main, status, got)
	}
}

func responseOf(got map[string]any) (status string, result any) {
	r, _ := got["response"].(map[string]any)
	status, _ = r["status"].(string)
	return status, r["result"]
}

func annotation(got map[string]any, key string) any {
	list, _ := got["annotations"].([]any)
	for _, a := range list {
		if m, _ := a.(map[string]any); m["key"] == key {
			return m["value"]
		}
	}
	return nil
}

// childrenOf are a process's containers.
func childrenOf(t *testing.T, parent int) (out []int) {
	t.Helper()
	list, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range list {
		data, err := os.ReadFile(f)
		var pid, ppid int
		var name, state string
		if err != nil {
			continue
		}
		if _, err := fmt.Sscanf(string(data), "%d %s %s %d", &pid, &name, &state, &ppid); err == nil && ppid == parent &&
			state != "Z" && strings.Contains(name, "platform") {
			out = append(out, pid)
		}
	}
	return out
}

func await(t *testing.T, p *Platform, id string) map[string]any {
	t.Helper()
	for range 6000 {
		if status, got := call(t, p, "GET", ns+"/activations/"+id, ""); status == 200 {
			return got
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("no record of %s", id)
	return nil
}
