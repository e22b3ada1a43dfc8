package robust

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/disdel/disdel/internal/test/faults"
)

// jobHome is a home with a job whose result shows all that is lost or done twice, and what the job comes to when it is
// left alone.
type jobHome struct {
	disdelIn
	file, want string
}

func newJobHome(t *testing.T, epochs int) jobHome {
	t.Helper()
	d := jobHome{disdelIn: newHome(t)}
	d.file = filepath.Join(d.home, "faults.yaml")
	if err := os.WriteFile(d.file, faults.Job(epochs, 2), 0o600); err != nil {
		t.Fatal(err)
	}
	d.want = d.weights(t, record(t, d.run(t, patience, "submit", d.file, "-o", "json", "-q")))
	return d
}

// same runs the job over a store and wants the result that it has when it is left alone.
func (d jobHome) same(t *testing.T, store string) {
	t.Helper()
	r := d.run(t, 2*patience, "submit", d.file, "--redis", "redis://"+store+"/0", "-o", "json", "-q")
	if r.code != 0 {
		t.Fatal(r)
	}
	if got := d.weights(t, record(t, r)); got != d.want {
		t.Errorf("weights %s, want %s", got, d.want)
	}
}

// edgeKills is how many aggregations die in one job, each at a later call than the one before.
const edgeKills = 24

// edges kills an aggregation at each of its calls to Redis in turn: the first that runs dies at its first call, the
// next one at its second. It dies before the call reaches Redis, or after Redis has done it and before the action
// knows.
func edges(c *trial) {
	asRoot(c.t)
	d := newJobHome(c.t, 6)
	for _, side := range []string{"before", "after"} {
		c.t.Run(side, func(t *testing.T) {
			w, address := wireTo(t, redisServer(t))
			var mu sync.Mutex
			killed := 0
			hit := func(c *client) {
				calls, aggregates, _ := c.state()
				mu.Lock()
				defer mu.Unlock()
				if aggregates && killed < edgeKills && calls > killed && c.kill() {
					killed++
				}
			}
			if side == "before" {
				w.before = hit
			} else {
				w.after = hit
			}
			w.start(t)
			d.same(t, address)
			t.Logf("%d aggregations were killed", killed)
			if killed < edgeKills {
				t.Errorf("%d aggregations were killed, want %d: calls beyond that were not tried", killed, edgeKills)
			}
		})
	}
}

// cutOffFor is longer than a claim's lease of 6 s: the claim of a worker that is cut off ends meanwhile.
const cutOffFor = 10 * time.Second

// cutsWanted is how many workers are cut off in one job.
const cutsWanted = 2

// severed is a worker that was cut off just after it had claimed its work.
type severed struct {
	client *client
	calls  int // that it had sent by then
}

// partitions cuts single workers off from Redis as soon as they have claimed their work, and joins them again after
// their lease. A worker that is cut off gives up, or sends late what is refused or is the same. The job ends with the
// result that it has when it is left alone.
func partitions(c *trial) {
	asRoot(c.t)
	d := newJobHome(c.t, 12)
	w, address := wireTo(c.t, redisServer(c.t))
	var mu sync.Mutex
	var cut []severed
	seen := map[*client]int{} // claims of each process that were answered
	skip := c.rng.IntN(8)     // claims that go by first
	w.after = func(k *client) {
		calls, _, works := k.state()
		mu.Lock()
		defer mu.Unlock()
		if works == seen[k] || k.pid <= 0 || len(cut) == cutsWanted {
			return
		}
		seen[k] = works
		if skip--; skip >= 0 || slices.ContainsFunc(cut, func(s severed) bool { return s.client == k }) {
			return
		}
		w.cutOff(k.pid)
		cut = append(cut, severed{k, calls})
		w.wait.Go(func() {
			select {
			case <-c.t.Context().Done():
			case <-time.After(cutOffFor):
			}
			w.join(k.pid)
		})
	}
	w.start(c.t)
	p := d.start(c.t, "submit", d.file, "--redis", "redis://"+address+"/0", "-o", "json", "-q")
	r := p.wait(c.t, 2*patience)
	if r.code != 0 {
		c.t.Fatal(r)
	}
	rec := record(c.t, r)
	if got := d.weights(c.t, rec); got != d.want {
		c.t.Errorf("weights %s, want %s", got, d.want)
	}
	mu.Lock()
	defer mu.Unlock()
	late := 0
	for _, s := range cut {
		if calls, _, _ := s.client.state(); calls > s.calls {
			late++
		}
	}
	c.t.Logf("%d workers were cut off, %d of them sent something afterwards; %d failed attempts", len(cut), late,
		rec.Losses.Attempts)
	if len(cut) != cutsWanted || late+rec.Losses.Attempts < cutsWanted {
		c.t.Errorf("%d workers were cut off: %d sent something afterwards, %d attempts failed: the test tests too little",
			len(cut), late, rec.Losses.Attempts)
	}
}

// clocks moves the clock of Redis by an hour forth and back while a job runs: leases and lives of keys are its own
// time.
func clocks(c *trial) {
	t := c.t
	d := newJobHome(t, 8)
	library, clock := movableClock(t)
	address := redisServer(t, "LD_PRELOAD="+library, "DISDEL_TEST_CLOCK="+clock)
	moves := []time.Duration{5 * time.Minute, time.Hour, -time.Hour, -5 * time.Minute, 0, time.Hour, -time.Hour}
	moved := 0
	for moved < len(moves) { // a fast machine runs the job more than once
		p := d.start(t, "submit", d.file, "--redis", "redis://"+address+"/0", "-o", "json", "-q")
		for moved < len(moves) && !p.ended() {
			select {
			case <-p.done:
				continue
			case <-time.After(100*time.Millisecond + time.Duration(c.rng.Int64N(int64(300*time.Millisecond)))):
			}
			setClock(t, clock, moves[moved])
			moved++
		}
		r := p.wait(t, 2*patience)
		if r.code != 0 {
			t.Fatal(r)
		}
		if got := d.weights(t, record(t, r)); got != d.want {
			t.Errorf("weights %s, want %s", got, d.want)
		}
	}
}

// movableClock builds a library that a server is started with, and the file that says how far its clock is moved.
func movableClock(t *testing.T) (library, clock string) {
	t.Helper()
	compiler, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is not installed; scripts/test-deps.sh installs it")
	}
	dir := t.TempDir()
	library, clock = filepath.Join(dir, "clock.so"), filepath.Join(dir, "clock")
	build := exec.Command(compiler, "-shared", "-fPIC", "-O1", "-o", library, "testdata/clock.c")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	setClock(t, clock, 0)
	return library, clock
}

// setClock writes into the file in place: the server has it mapped.
func setClock(t *testing.T, clock string, to time.Duration) {
	t.Helper()
	f, err := os.OpenFile(clock, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(int64(to/time.Second))), 0)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// asRoot skips where the processes of actions cannot be told apart: their users are others.
func asRoot(t *testing.T) {
	t.Helper()
	if syscall.Geteuid() != 0 {
		t.Skip("needs root: which process a connection belongs to is seen by root alone")
	}
}
