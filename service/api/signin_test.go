package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/tenant"
)

// The home's audit log has a line for each sign-in, submission, deletion, share and refusal, with the job that was
// submitted, and no token.
func TestTheHomeKeepsAnAuditLog(t *testing.T) {
	home := t.TempDir()
	h := houseOf(t, Config{Audit: tenant.NewAudit(home)}, service.Config{Home: home, TakeOver: true})
	id := h.submitted("training.epochs=1").ID
	h.ask("ann read", "GET", "/api/v1/jobs/"+string(id)+"/wait?timeout=5m", nil)
	h.ask("ann submit", "PUT", "/api/v1/shares/dataset/digits", apitypes.ShareRequest{All: true})
	h.ask("bob read", "GET", "/api/v1/datasets/ann%2Fdigits", nil)
	h.ask("ann read", "DELETE", "/api/v1/datasets/digits", nil)
	h.ask("ann admin", "DELETE", "/api/v1/datasets/digits", nil)
	h.ask("a token of nobody", "GET", "/api/v1/jobs", nil)
	h.ask(operator, "GET", "/api/v1/jobs?secret=of-the-query", nil)
	text, err := os.ReadFile(filepath.Join(home, tenant.AuditFile))
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for line := range strings.Lines(string(text)) {
		var one tenant.AuditLine
		if err := json.Unmarshal([]byte(line), &one); err != nil || one.Time.IsZero() {
			t.Fatalf("%q: %v", line, err)
		}
		if one.Event == tenant.AuditSubmission && one.Job != id {
			t.Errorf("the submission of %s says %s", id, one.Job)
		}
		if one.Event != tenant.AuditToken && one.From == "" {
			t.Errorf("it is not known from where: %s", line)
		}
		seen = append(seen, fmt.Sprintln(one.Event, one.Tenant, one.Role, one.Method, one.Path, one.Status))
	}
	for _, want := range []string{
		"signIn ann admin   0", "signIn bob read   0", "signIn operator admin   0",
		"submission ann submit POST /api/v1/jobs 201", "share ann submit PUT /api/v1/shares/dataset/digits 200",
		"refused ann read DELETE /api/v1/datasets/digits 403", "deletion ann admin DELETE /api/v1/datasets/digits 200",
		"refused   GET /api/v1/jobs 401", "token ann submit   0",
	} {
		if n := len(slices.DeleteFunc(slices.Clone(seen), func(s string) bool { return s != want+"\n" })); n != 1 {
			t.Errorf("%d lines %q in\n%s", n, want, strings.Join(seen, ""))
		}
	}
	secrets := []string{operator, "a token of nobody", "of-the-query"}
	for _, token := range h.tokens {
		secrets = append(secrets, token)
	}
	for _, secret := range secrets {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("the log has %q", secret)
		}
	}
}

// The answer to a wrong token takes longer with each failure of an address, up to a bound. The first failure, another
// address and a valid token do not wait, and no more answers are delayed at once than the bound says.
func TestWrongTokensAreAnsweredSlowly(t *testing.T) {
	var f failures
	now, most := time.Now(), 2*time.Second
	var last time.Duration
	for n := range 20 {
		wait, end := f.begin("192.0.2.1", most, now)
		end()
		if wait < last || wait > most || (n == 0) != (wait == 0) {
			t.Errorf("failure %d waits %v after %v", n+1, wait, last)
		}
		last = wait
	}
	if last != most {
		t.Errorf("after 20 failures the answer waits %v", last)
	}
	if wait, _ := f.begin("192.0.2.2", most, now); wait != 0 {
		t.Errorf("another address waits %v", wait)
	}
	for range 2 * mostDelayed {
		f.begin("192.0.2.1", most, now)
	}
	if f.waiting != mostDelayed {
		t.Errorf("%d answers are delayed at once", f.waiting)
	}
	h := newHouse(t, Config{SlowSignIn: time.Millisecond})
	for range 3 {
		if status, _ := h.ask("a token of nobody", "GET", "/api/v1/jobs", nil); status != 401 {
			t.Errorf("a wrong token: %d", status)
		}
	}
	if status, _ := h.ask("ann read", "GET", "/api/v1/jobs", nil); status != 200 {
		t.Errorf("a valid token: %d", status)
	}
}

// Whoever has no token cannot drive lines out of the home's audit log: its lines are short, and those of a minute are
// few, with one line that counts the rest. A tenant's refused requests have the same bound.
func TestRefusedRequestsDoNotFillTheAuditLog(t *testing.T) {
	home := t.TempDir()
	h := houseOf(t, Config{Audit: tenant.NewAudit(home)}, service.Config{Home: home})
	h.ask("ann admin", "DELETE", "/api/v1/datasets/digits", nil)
	long := strings.Repeat("%01<>&", 2000)
	const asked = 100
	for n := range asked {
		h.ask("a token of nobody", "GET", "/api/v1/jobs", nil)
		h.ask("", "POST", "/"+long, nil)
		h.ask("ann read", "DELETE", fmt.Sprintf("/api/v1/datasets/x%d", n), nil)
		if n == 0 {
			h.ask("", strings.Repeat("M", 10_000), "/api/v1/jobs", nil)
		}
	}
	text, err := os.ReadFile(filepath.Join(home, tenant.AuditFile))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n > 100 || len(text) > 100<<10 {
		t.Errorf("%d requests left %d lines, %d bytes", 3*asked, n, len(text))
	}
	if !bytes.Contains(text, []byte(`"deletion"`)) {
		t.Errorf("the line of a deletion is gone\n%s", text)
	}
	var f refusals
	now := time.Unix(600, 0)
	f.ended(now)
	own := 0
	for range asked {
		if f.admit("") {
			own++
		}
	}
	if own != mostRefusals {
		t.Errorf("%d requests have lines of their own", own)
	}
	if of := f.ended(now.Add(59 * time.Second)); of != nil {
		t.Errorf("the minute is not over: %v", of)
	}
	if of := f.ended(now.Add(time.Minute)); of[""] != asked {
		t.Errorf("%v, want %d", of, asked)
	}
	if of := f.ended(now.Add(2 * time.Minute)); of != nil {
		t.Errorf("it is counted twice: %v", of)
	}
}
