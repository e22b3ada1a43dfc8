package platform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/test/wait"
)

// copyData copies what a platform has on its disk at this moment, which is what a kill would leave.
func copyData(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	for _, name := range []string{"platform.db", "accepted.jsonl"} {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// A platform that was killed and started again answers at once for everything that it had accepted: with the record,
// where there was one, and else with one that says that it was lost. What ended well is not counted twice.
func TestAKilledPlatformAnswersForWhatItLost(t *testing.T) {
	dir := t.TempDir()
	p := start(t, func(c *Config) { c.DataDir, c.PoolMemory = dir, 256*disdel.MB })
	newTestAction(t, p, "echo", 60000, 128)
	newTestAction(t, p, "sleep", 60000, 256)
	must(t, p, "PUT", "_/actions/s", `{"exec":{"kind":"sequence","components":["/_/sleep"]}}`)
	done := must(t, p, "POST", "_/actions/echo?blocking=true", `{"a":1}`).at("activationId").(string)
	var lost []string
	names := []string{"sleep", "sleep", "s"} // one runs, two wait for room
	for _, name := range names {
		lost = append(lost, must(t, p, "POST", "_/actions/"+name, `{"ms":600000}`).at("activationId").(string))
	}
	again := copyData(t, dir)
	t.Run("restarted", func(t *testing.T) {
		p := start(t, func(c *Config) { c.DataDir = again })
		for i, id := range lost {
			got := must(t, p, "GET", "_/activations/"+id, "")
			if got.at("response.status") != statusInternal || got.at("response.result.error") != textLost ||
				got.at("name") != names[i] ||
				got.at("version") == nil || got.noted("path") == nil || got.noted("timeout") != false {
				t.Errorf("%s", got.body)
			}
		}
		if got := must(t, p, "GET", "_/activations/"+done, ""); got.at("response.status") != statusSuccess {
			t.Errorf("%s", got.body)
		}
		if got := must(t, p, "GET", "_/activations?count=true", ""); got.at("activations").(float64) < 4 {
			t.Errorf("%s", got.body)
		}
		if data, _ := os.ReadFile(filepath.Join(again, "accepted.jsonl")); len(data) > 0 {
			t.Errorf("what has a record is still open: %s", data)
		}
	})
}

// What was cut off or damaged in the file keeps nothing else from its answer, and what has a record keeps it.
func TestTheFileOfAcceptedActivationsMayBeDamaged(t *testing.T) {
	dir := t.TempDir()
	line := func(id, ns string) string {
		data, _ := json.Marshal(acceptedEntry{Lost: &activation{
			ActivationID: id, Namespace: ns, Name: "a", Start: 5,
			Logs: []string{},
		}})
		return string(data)
	}
	a, b, c := strings.Repeat("a", 32), strings.Repeat("b", 32), strings.Repeat("c", 32)
	text := line(a, "guest") + "\n" + "{\"lost\":{\"activ\n\x00\xff\n[]\n" + line("../x", "guest") + "\n" + line(c, "") +
		"\n" + line(b, "guest") + "\n{\"filed\":\"" + a + "\"}\n" + line(c, "guest")[:20]
	if err := os.WriteFile(filepath.Join(dir, "accepted.jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, func(c *Config) { c.DataDir = dir })
	if got := must(t, p, "GET", "_/activations", ""); got.at("0.activationId") != b || got.at("1") != nil {
		t.Errorf("%s", got.body)
	}
}

// The file stays small however many activations there are.
func TestTheFileOfAcceptedActivationsStaysSmall(t *testing.T) {
	dir := t.TempDir()
	a, _, err := openAccepted(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { a.close() }()
	kept := &activation{ActivationID: strings.Repeat("f", 32), Namespace: "guest", Logs: []string{}}
	if err := a.add(kept); err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 {
		v := &activation{ActivationID: fmt.Sprintf("%032x", i), Namespace: "guest", Logs: []string{}}
		if err := a.add(v); err != nil {
			t.Fatal(err)
		}
		a.recorded(v.ActivationID)
	}
	if info, err := os.Stat(filepath.Join(dir, "accepted.jsonl")); err != nil || info.Size() > 2*compactAbove ||
		info.Size() != a.size {
		t.Errorf("%v, %v, and it thinks %d", info.Size(), err, a.size)
	}
	if left, err := readAccepted(filepath.Join(dir, "accepted.jsonl")); err != nil || len(left.lost) != 1 ||
		left.lost[0].ActivationID != kept.ActivationID {
		t.Errorf("open are %v, %v", left, err)
	}
}

// smallDisk is a folder on a disk of its own.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no disk can be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill takes all the room of a disk, and returns what gives it back.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "full"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := 1 << 20; block > 0; block /= 2 {
		for {
			if _, err := f.Write(bytes.Repeat([]byte{1}, block)); err != nil {
				break
			}
		}
	}
	return func() { os.Remove(f.Name()) }
}

// On a full disk nothing that was accepted is lost: its record is answered from memory, in every form, and written when
// there is room. Nothing new is accepted until then, with a text that says why.
func TestAFullDiskLosesNothing(t *testing.T) {
	dir := smallDisk(t, "4m")
	data := filepath.Join(dir, "data")
	p := start(t, func(c *Config) { c.DataDir = data })
	newTestAction(t, p, "waits", 60000, 128)
	newTestAction(t, p, "chatter", 60000, 128)
	signal := filepath.Join(t.TempDir(), "go")
	id := must(t, p, "POST", "_/actions/waits", fmt.Sprintf(`{"for":%q}`, signal)).at("activationId").(string)
	free := fill(t, dir)
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var got *replied
	wait.Until(t, "the record", func() bool {
		got = ask(t, p, p.AuthKey(), "GET", "_/activations/"+id, "")
		return got.status == 200
	})
	if got.at("response.status") != statusSuccess {
		t.Errorf("%s", got.body)
	}
	if len(p.pending.newest("guest")) != 1 {
		t.Fatal("the disk is not full")
	}
	if got := must(t, p, "GET", "_/activations", ""); got.at("0.activationId") != id || got.at("1") != nil {
		t.Errorf("list: %s", got.body)
	}
	if got := must(t, p, "GET", "_/activations?docs=true&name=waits", ""); got.at("0.response.status") != statusSuccess {
		t.Errorf("list of documents: %s", got.body)
	}
	if got := must(t, p, "GET", "_/activations?count=true", ""); got.at("activations") != 1.0 {
		t.Errorf("count: %s", got.body)
	}
	for _, c := range [][3]string{
		{"POST", "_/actions/chatter", `{}`},
		{"PUT", "_/packages/large", `{"parameters":[{"key":"x","value":"` + strings.Repeat("x", 100_000) + `"}]}`},
	} {
		if got := ask(t, p, p.AuthKey(), c[0], c[1], c[2]); got.status != 503 ||
			!strings.Contains(got.text(), "cannot write to its data folder (no space left on device)") {
			t.Errorf("%s %s: %d %s", c[0], c[1], got.status, got.body)
		}
	}
	free()
	wait.Until(t, "the record written", func() bool { return p.pending.writeError() == nil })
	if got := must(t, p, "GET", "_/activations?count=true", ""); got.at("activations") != 1.0 {
		t.Errorf("count: %s", got.body)
	}
	must(t, p, "POST", "_/actions/chatter?blocking=true", `{}`)
	if err := p.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Run("restarted", func(t *testing.T) {
		p := start(t, func(c *Config) { c.DataDir = data })
		if got := must(t, p, "GET", "_/activations/"+id, ""); got.at("response.status") != statusSuccess {
			t.Errorf("%s", got.body)
		}
	})
}

// A request that waits for its activation's end has it written down only when somebody may hear of it: when it has run
// for a while, or when its id is told.
func TestAWaitedForActivationIsWrittenDownInTime(t *testing.T) {
	dir := t.TempDir()
	p := start(t, func(c *Config) { c.DataDir = dir })
	newTestAction(t, p, "sleep", 60000, 128)
	open := func(id string) (n int, has bool) {
		p.accepted.mu.Lock()
		defer p.accepted.mu.Unlock()
		_, has = p.accepted.open[id]
		return len(p.accepted.open), has
	}
	id := must(t, p, "POST", "_/actions/sleep?blocking=true&timeout=1", `{"ms":600000}`).at("activationId").(string)
	if n, has := open(id); n != 1 || !has {
		t.Errorf("an activation whose id was told is not among the %d that are written down", n)
	}
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		req, _ := http.NewRequestWithContext(ctx, "POST", p.URL()+ns+"/actions/sleep?blocking=true",
			strings.NewReader(`{"ms":600000}`))
		user, key, _ := strings.Cut(p.AuthKey(), ":")
		req.SetBasicAuth(user, key)
		req.Header.Set("Content-Type", "application/json")
		if res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req); err == nil {
			res.Body.Close()
		}
	}()
	wait.Until(t, "the second one written down", func() bool { n, _ := open(""); return n == 2 })
	leave()
	<-gone
	left, err := readAccepted(filepath.Join(copyData(t, dir), "accepted.jsonl"))
	if err != nil || len(left.lost) != 2 {
		t.Errorf("a kill would leave %d, %v", len(left.lost), err)
	}
}

// Ids come in the order of their activations, to the millisecond, and none comes twice.
func TestIdsOfActivationsComeInOrder(t *testing.T) {
	last := newActivationID()
	for range 1000 {
		id := newActivationID()
		if id[:12] < last[:12] || id == last || !activationID.MatchString(id) {
			t.Fatalf("%s after %s", id, last)
		}
		last = id
	}
}
