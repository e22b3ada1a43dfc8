package cli

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/platform/local"
)

// Namespaces are added to the platform that runs, by who has its home, and are there when it starts again.
func TestNamespacesFromTheCommandLine(t *testing.T) {
	d := build(t)
	if _, errs, code := d.run("platform", "user", "list"); code != terminal.ExitUnreachable ||
		!strings.Contains(errs, "none runs") {
		t.Errorf("without a platform: exit %d\n%s", code, errs)
	}
	for _, bad := range []string{":uuid:a-long-enough-secret", "alice:nocolon"} {
		if _, errs, code := d.run("platform", "up", "--port", "0", "--namespace", bad); code != terminal.ExitUsage ||
			!strings.Contains(errs, "NAME or NAME:UUID:SECRET") {
			t.Errorf("%s: exit %d\n%s", bad, code, errs)
		}
	}
	cmd, state := d.up("--namespace", "alice", "--namespace", "bob:bobs-uuid:a-long-enough-secret")
	out, errs, code := d.run("platform", "user", "create", "carol", "--per-minute", "7")
	key := strings.TrimSpace(out)
	if code != 0 || !strings.Contains(key, ":") {
		t.Fatalf("create: exit %d\n%s%s", code, out, errs)
	}
	if _, errs, code := d.run("platform", "user", "create", "carol"); code == 0 ||
		!strings.Contains(errs, "the namespace carol exists already") {
		t.Errorf("twice: exit %d\n%s", code, errs)
	}
	if out, _, _ := d.run("platform", "user", "list"); !strings.Contains(out, "carol") || strings.Contains(out, key) {
		t.Errorf("list\n%s", out)
	}
	var list []local.Tenant
	out, _, _ = d.run("platform", "user", "list", "--keys", "-o", "json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 4 ||
		list[2].Key != "bobs-uuid:a-long-enough-secret" ||
		list[3].Key != key || list[3].InvocationsPerMinute != 7 {
		t.Errorf("%v\n%s", err, out)
	}
	for _, who := range []string{"", key, "bobs-uuid:a-long-enough-secret"} {
		if status := askNamespaces(t, state.Address, who, ""); status != http.StatusUnauthorized {
			t.Errorf("%q lists keys: %d", who, status)
		}
	}
	if status := askNamespaces(t, state.Address, list[0].Key, "http://evil.example"); status != http.StatusForbidden {
		t.Errorf("a web page lists keys: %d", status)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
	cmd, _ = d.up("--namespace", "alice")
	var again []local.Tenant
	out, _, _ = d.run("platform", "user", "list", "--keys", "-o", "json")
	if err := json.Unmarshal([]byte(out), &again); err != nil || len(again) != 4 || again[1] != list[1] ||
		again[3] != list[3] {
		t.Errorf("after a restart: %v\n%s", err, out)
	}
	if _, errs, code := d.run("platform", "user", "delete", "carol"); code != 0 {
		t.Errorf("delete: exit %d\n%s", code, errs)
	}
	if _, errs, code := d.run("platform", "user", "delete", "carol"); code == 0 ||
		!strings.Contains(errs, "there is no namespace carol") {
		t.Errorf("twice: exit %d\n%s", code, errs)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
	d.nothingStays()
}

// askNamespaces asks for the namespaces with a key, as a page of an origin if one is named.
func askNamespaces(t *testing.T, address, key, origin string) int {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, address+"/disdel/namespaces", nil)
	if err != nil {
		t.Fatal(err)
	}
	if user, secret, ok := strings.Cut(key, ":"); ok {
		req.SetBasicAuth(user, secret)
	}
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}
