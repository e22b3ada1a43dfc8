package robust

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/disdel/disdel/internal/test/faults"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// freePort is a port that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	port, err := faults.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

// server runs a server of other people until the test ends.
func server(t *testing.T, ready func() bool, name string, args ...string) *exec.Cmd {
	t.Helper()
	return serverWith(t, nil, ready, name, args...)
}

// serverWith is server with more in its environment.
func serverWith(t *testing.T, env []string, ready func() bool, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // killed
	})
	for deadline := time.Now().Add(patience); !ready(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer", name)
		}
	}
	return cmd
}

func dials(address string) func() bool {
	return func() bool {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		c.Close()
		return true
	}
}

// badLines runs a job over lines to Redis that are slow, pass a few bytes at a time, or are cut again and again: it
// ends with the bits of a job left alone, and within the bound on retries.
func badLines(c *trial) {
	t, d := c.t, newHome(c.t)
	file := d.job(t, "lines", shortJob(4))
	want := d.weights(t, record(t, d.run(t, patience, "submit", file, "-o", "json", "-q")))
	address := redisServer(t)
	for name, l := range map[string]*faults.Line{
		"100 ms":        {Delay: 50 * time.Millisecond},
		"1 MB/s":        {Rate: 1 << 20},
		"200 bytes":     {Piece: 200},
		"cut every 3 s": {Resets: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			over := l.To(t, address, c.rng)
			r := d.run(t, patience, "submit", file, "--redis", "redis://"+over+"/0", "-o", "json", "-q")
			if r.code != 0 {
				t.Fatal(r)
			}
			rec := record(t, r)
			if got := d.weights(t, rec); got != want {
				t.Errorf("weights %s, want %s", got, want)
			}
			attempts := map[string]int{}
			for _, a := range rec.Activations {
				attempts[fmt.Sprint(a.Task, a.Round, a.Level, a.Member)]++
			}
			for what, n := range attempts {
				if n > 7 {
					t.Errorf("%s was tried %d times", what, n)
				}
			}
		})
	}
}

// historyServer returns what starts a pouchdb-server on the same port and folder each time, and its address.
func historyServer(t *testing.T) (start func() *exec.Cmd, url string) {
	t.Helper()
	pouchdb := os.Getenv("DISDEL_TEST_POUCHDB")
	if _, err := os.Stat(pouchdb); err != nil {
		t.Skip("pouchdb-server is not installed; scripts/test-deps.sh installs it")
	}
	port, data := freePort(t), t.TempDir()
	url = "http://127.0.0.1:" + port
	up := func() bool {
		r, err := http.Get(url + "/")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	}
	return func() *exec.Cmd {
		return server(t, up, pouchdb, "--port", port, "--host", "127.0.0.1", "--dir", data, "--config",
			filepath.Join(data, "config.json"))
	}, url
}

// lostHistory takes the history away while a job runs, and brings it back after the job's end: training is not stopped,
// and the record is there once, delivered by the next command.
func lostHistory(c *trial) {
	t, d := c.t, newHome(c.t)
	start, url := historyServer(t)
	first := start()
	p := d.start(t, "submit", d.job(t, "away", shortJob(12)), "--couchdb", url, "-o", "json", "-q")
	time.Sleep(500*time.Millisecond + time.Duration(c.rng.Int64N(int64(time.Second)))) // somewhere in the job
	first.Process.Kill()                                                               //nolint:errcheck // it may have ended
	r := p.wait(t, patience)
	rec := record(t, r)
	if rec.Status.String() != "succeeded" {
		t.Fatalf("the history's end stopped the job: %v", r)
	}
	start()
	list := d.run(t, patience, "history", "--couchdb", url, "-o", "json")
	found := 0
	for _, x := range records(t, list) {
		if x.ID == rec.ID && x.Status == rec.Status {
			found++
		}
	}
	if found != 1 {
		t.Errorf("the record is there %d times: %v", found, list)
	}
}
