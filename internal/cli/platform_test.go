package cli

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/platform/local"
)

// endLeftPlatform ends what a script that failed left running.
func endLeftPlatform(home string) {
	if s, running := local.Find(home); running {
		local.Signal(home, s, syscall.SIGKILL)
	}
}

// up starts a platform in the foreground of another process and waits until it serves.
func (d *tool) up(args ...string) (*exec.Cmd, local.State) {
	d.t.Helper()
	cmd, _, errs := d.command(append([]string{"platform", "up", "--port", "0"}, args...)...)
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { cmd.Process.Kill() })
	for range 1000 {
		if s, running := local.Find(d.home); running && s.Address != "" {
			return cmd, s
		}
		time.Sleep(10 * time.Millisecond)
	}
	cmd.Process.Kill()
	cmd.Wait()
	d.t.Fatalf("no platform: %s", errs)
	return nil, local.State{}
}

// A job runs on the platform of another process with nothing but its address: its key comes from the home, and its
// actions reach the store and the data of the process that submits. A SIGTERM is an end like any other, and leaves
// nothing.
func TestAJobRunsOnAPlatformOfAnotherProcess(t *testing.T) {
	t.Parallel()
	d := build(t)
	cmd, state := d.up()
	out, errs, code := d.run("quickstart", "--apihost", state.Address, "-o", "json")
	if code != 0 {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	if doc := parse(t, out); doc.Status != "succeeded" || doc.Accuracy < 0.95 || doc.count("train", 0) == 0 {
		t.Errorf("%s, accuracy %g", doc.Status, doc.Accuracy)
	}
	if n := activationsOf(t, state); n == 0 {
		t.Error("the platform has no activation: the job ran somewhere else")
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
	d.nothingStays()
}

// activationsOf asks a platform how many activations it has, with the key that it left for wsk.
func activationsOf(t *testing.T, state local.State) int {
	t.Helper()
	properties, err := os.ReadFile(state.Properties)
	if err != nil {
		t.Fatal(err)
	}
	_, key, _ := strings.Cut(string(properties), "AUTH=")
	key, _, _ = strings.Cut(key, "\n")
	user, password, _ := strings.Cut(key, ":")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		state.Address+"/api/v1/namespaces/_/activations?count=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(user, password)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var got struct{ Activations int }
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	return got.Activations
}

// The state of a platform that was killed is not believed, and the next one starts over it.
func TestAKilledPlatformIsNotThere(t *testing.T) {
	d := build(t)
	cmd, _ := d.up()
	cmd.Process.Kill()
	cmd.Wait()
	if _, errs, code := d.run("platform", "status"); code != terminal.ExitUnreachable ||
		!strings.Contains(errs, "none runs") {
		t.Errorf("status: exit %d\n%s", code, errs)
	}
	cmd, _ = d.up()
	if _, errs, code := d.run("platform", "down"); code != 0 {
		t.Errorf("down: exit %d\n%s", code, errs)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("down: %v", err)
	}
	d.nothingStays()
}

// What was made on a platform is there when it starts again.
func TestActionsOutliveAPlatform(t *testing.T) {
	d := build(t)
	for _, method := range []string{http.MethodPut, http.MethodGet} {
		cmd, state := d.up()
		if status := d.ask(method, state.Address+"/api/v1/namespaces/_/actions/mine",
			`{"exec":{"kind":"disdel:1","code":"x"}}`); status != http.StatusOK {
			t.Errorf("%s: %d", method, status)
		}
		if _, errs, code := d.run("platform", "down"); code != 0 {
			t.Fatalf("exit %d\n%s", code, errs)
		}
		cmd.Wait()
	}
}

// ask sends a request with the key of the home's platform.
func (d *tool) ask(method, url, body string) int {
	d.t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	user, key, _ := strings.Cut(local.ReadProperties(local.PropertiesFile(d.home))["AUTH"], ":")
	req.SetBasicAuth(user, key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// A port that is taken is named, in the foreground and in the background alike.
func TestAPortInUseIsNamed(t *testing.T) {
	d := build(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, more := range [][]string{{}, {"--detach"}} {
		_, errs, code := d.run(append([]string{"platform", "up", "--port", port}, more...)...)
		if code != terminal.ExitUnreachable || !strings.Contains(errs, "127.0.0.1:"+port+" is in use") ||
			!strings.Contains(errs, "hint:") {
			t.Errorf("%v: exit %d\n%s", more, code, errs)
		}
	}
	d.nothingStays()
}
