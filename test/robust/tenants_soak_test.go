package robust

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
)

// soaked is a server that three tenants use for long, and that is killed and started again meanwhile.
type soaked struct {
	t       *testing.T
	home    disdelIn
	redis   string
	began   time.Time
	tenants map[string]string // tokens by name

	mu      sync.Mutex
	server  *serving            // guarded by mu
	pooled  float64             // guarded by mu: the most connections to Redis that this server was seen with
	ended   int                 // guarded by mu: jobs
	kept    map[string][]string // guarded by mu: ended jobs in the history, by tenant
	samples []sample            // guarded by mu
}

// sample is what a server holds at a time.
type sample struct {
	at     time.Duration
	of     map[string]float64 // nil: it does not answer
	pooled float64            // the most connections to Redis until then
	busy   float64            // jobs that run or wait
}

// The quantities of a sample.
const (
	residentMB = "resident memory (MB)"
	heapMB     = "live heap (MB)"
	descriptor = "descriptors"
	goroutines = "goroutines"
	redisKeys  = "keys in Redis"
	redisConns = "connections to Redis"
	ownConns   = "connections to itself"
)

// Three tenants submit drawn jobs for DISDEL_SOAK_HOURS. Actions are killed, jobs canceled, and the server is killed
// and started again. While no job runs, at the end of a life of the server, it holds no more than early in that life.
func TestSoakOfTenants(t *testing.T) {
	hours, err := strconv.ParseFloat(os.Getenv("DISDEL_SOAK_HOURS"), 64)
	if err != nil {
		t.Skip("make soak HOURS=1 runs this")
	}
	seed, _ := strconv.ParseUint(os.Getenv("DISDEL_ROBUST_SEED"), 10, 64) //nolint:errcheck // none: 0
	s := &soaked{
		t: t, home: newHome(t), redis: redisServer(t), began: time.Now(), tenants: map[string]string{},
		kept: map[string][]string{},
	}
	for _, name := range []string{"ann", "bob", "eve"} {
		made := s.home.run(t, patience, "tenant", "create", name, "-o", "json")
		var tenant struct{ Token string }
		if err := json.Unmarshal([]byte(made.out), &tenant); err != nil || tenant.Token == "" {
			t.Fatal(made)
		}
		s.tenants[name] = tenant.Token
	}
	s.home.env = append(s.home.env, "GOGC=10") // so that it collects its garbage while it rests
	long := time.Duration(hours * float64(time.Hour))
	lives := 2
	if hours >= 0.5 {
		lives = 4
	}
	stop := s.watch(long / 200)
	defer stop()
	growth := 0.0
	for life := range lives {
		growth = max(growth, s.live(long/time.Duration(lives), seed+uint64(life)))
	}
	stop()
	t.Logf("%d jobs in %v, %d lives of the server", s.ended, time.Since(s.began).Round(time.Second), lives)
	fmt.Printf("figure soak_jobs %d jobs\nfigure soak_growth_pct %.1f %%\n", s.ended, growth)
	s.draw(os.Getenv("DISDEL_SOAK_PLOT"))
}

// perConnection is what one connection of a kind accounts for, in each quantity. Pools open and close connections as
// requests overlap: up to six to Redis, as a test of the aggregator holds, and some to the server itself. A connection
// to itself has two ends here. How many there are is no growth.
// A pool of go-redis keeps the buffers of a closed connection until a new one takes its place.
var perConnection = map[string]map[string]float64{
	redisConns: {descriptor: 1},
	ownConns:   {descriptor: 2, heapMB: 17.0 / 1024, goroutines: 3},
}

const pooledMB = 65.0 / 1024 // of the heap, for each connection to Redis that there was

// withoutConnections is a quantity of a sample, less what its connections account for.
func (s sample) withoutConnections(what string) float64 {
	v := s.of[what]
	for kind, each := range perConnection {
		v -= each[what] * s.of[kind]
	}
	if what == heapMB {
		v -= pooledMB * s.pooled
	}
	return v
}

// live starts the server, has jobs run for a time, and kills it while jobs run. It returns by how many per cent what
// the server holds at rest has grown since a third of the time, pooled connections left out.
func (s *soaked) live(long time.Duration, seed uint64) (growth float64) {
	server := serve(s.t, s.home, "--pool-memory", "1GB", "--redis", "redis://"+s.redis+"/0")
	// How many of the test's own connections stay open goes by which requests overlap: it keeps none.
	server.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	s.mu.Lock()
	s.server, s.pooled = server, 0
	s.mu.Unlock()
	for name := range s.tenants {
		own := s.as(name)
		if status, answer, err := own.call("POST", "/api/v1/datasets", []byte(`{"source": "digits"}`)); err != nil ||
			status != http.StatusCreated && status != http.StatusConflict { // as it was added in an earlier life
			s.t.Fatalf("%s: %d, %v: %s", name, status, err, answer)
		}
	}
	s.jobs(long/3, seed, 0)
	before := s.atRest()
	s.jobs(long*2/3, seed, 1)
	after := s.atRest()
	for what, had := range before.of {
		by := 100 * (after.of[what] - had) / max(had, 1)
		s.t.Logf("%s: %.2f, then %.2f (%+.1f %%)", what, had, after.of[what], by)
		if what != residentMB && perConnection[what] == nil { // resident memory follows the collector and the system
			growth = max(growth, by)
		}
	}
	for name := range s.tenants { // these jobs run when the server dies, and go on with the next one
		if _, err := s.submit(name, shortJob(3)); err != nil {
			s.t.Errorf("%s: %v", name, err)
		}
	}
	s.mu.Lock()
	s.server = nil
	s.mu.Unlock()
	server.kill()
	return growth
}

// jobs has each tenant run jobs one after another, and returns when all have ended.
func (s *soaked) jobs(long time.Duration, seed, part uint64) {
	var all sync.WaitGroup
	end, n := time.Now().Add(long), uint64(0)
	for name := range s.tenants {
		n++
		rng := rand.New(rand.NewPCG(seed, 10*n+part))
		all.Go(func() {
			for time.Now().Before(end) {
				s.job(name, rng)
			}
		})
	}
	all.Wait()
}

// job runs a drawn job. It may be canceled, or one of the server's actions is killed meanwhile.
func (s *soaked) job(tenant string, rng *rand.Rand) {
	job, err := s.submit(tenant, strings.Replace(shortJob(1+rng.IntN(4)), "workers: 2",
		fmt.Sprintf("workers: %d", 1+rng.IntN(3)), 1))
	if err != nil {
		s.t.Error(err)
		time.Sleep(time.Second)
		return
	}
	time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Second))))
	own := s.as(tenant)
	switch victims := children(own.cmd.Process.Pid); {
	case rng.IntN(5) == 0:
		own.call("POST", "/api/v1/jobs/"+job+"/cancel", nil) //nolint:errcheck // it may have ended
	case rng.IntN(3) == 0 && len(victims) > 0:
		syscall.Kill(victims[rng.IntN(len(victims))], syscall.SIGKILL) //nolint:errcheck // it may have ended
	}
	if rec := own.ends(job); rec.Status != disdel.StatusSucceeded && rec.Status != disdel.StatusCanceled {
		s.t.Errorf("%s: %v: %v", job, rec.Status, rec.Failure)
	}
	s.mu.Lock()
	s.ended++
	s.kept[tenant] = append(s.kept[tenant], job)
	oldest := s.kept[tenant][0]
	if len(s.kept[tenant]) <= keptJobs {
		oldest = ""
	} else {
		s.kept[tenant] = s.kept[tenant][1:]
	}
	s.mu.Unlock()
	if oldest == "" {
		return
	}
	if status, answer, err := own.call("DELETE", "/api/v1/jobs/"+oldest, nil); err != nil || status >= 300 {
		s.t.Errorf("%s is not forgotten: %d, %v: %s", oldest, status, err, answer)
	}
}

// keptJobs is how many ended jobs of a tenant stay in the history. The history's file has memory for each of its pages
// (bbolt notes which transaction took a page, some 40 bytes), so that it must not grow here.
const keptJobs = 20

// as is the server as a tenant calls it.
func (s *soaked) as(tenant string) *serving {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := *s.server
	own.token = s.tenants[tenant]
	return &own
}

func (s *soaked) submit(tenant, job string) (id string, err error) {
	file, err := os.ReadFile(s.home.job(s.t, "soak-"+tenant, job))
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(map[string]string{"file": string(file)})
	if err != nil {
		return "", err
	}
	status, answer, err := s.as(tenant).call("POST", "/api/v1/jobs", body)
	if err != nil {
		return "", err
	}
	if status != http.StatusCreated {
		return "", fmt.Errorf("submit: %d: %s", status, answer)
	}
	var rec disdel.Record
	err = json.Unmarshal(answer, &rec)
	return string(rec.ID), err
}

// atRest is what the server holds once no job runs, less what its connections account for: the least of some looks,
// each with the connections of its time. Requests have it collect its garbage: their answers are as large with few jobs
// as with many, because what is being answered counts as live.
// Actions that wait for work are ended first, since how many there are depends on the last jobs. The requests come one
// after another: several at once would open as many connections as happen to overlap, and keep them.
func (s *soaked) atRest() (least sample) {
	await(s.t, "all jobs to end", func() bool {
		now := s.measure()
		return now.of != nil && now.busy == 0
	})
	for _, waiting := range children(s.as("ann").cmd.Process.Pid) {
		syscall.Kill(waiting, syscall.SIGKILL) //nolint:errcheck // it may have ended
	}
	time.Sleep(100 * time.Second) // connections that nobody uses are closed after 90
	// A collection counts what is allocated meanwhile: looks differ by up to 4 %.
	const looks, requests = 60, 20
	least.of = map[string]float64{}
	for range looks {
		time.Sleep(time.Second)
		for range requests {
			s.server.call("GET", "/metrics", nil) //nolint:errcheck // whatever it answers
		}
		now := s.measure()
		for what := range now.of {
			v := now.withoutConnections(what)
			if had, is := least.of[what]; is {
				v = min(had, v)
			}
			least.of[what] = v
		}
	}
	return least
}

// measure asks the server what it holds.
func (s *soaked) measure() sample {
	s.mu.Lock()
	server := s.server
	s.mu.Unlock()
	if server == nil {
		return sample{}
	}
	out := sample{at: time.Since(s.began), of: map[string]float64{}}
	_, page, err := server.call("GET", "/metrics", nil)
	files, err2 := os.ReadDir(fmt.Sprintf("/proc/%d/fd", server.cmd.Process.Pid))
	port := s.redis[strings.LastIndex(s.redis, ":")+1:]
	keys, err3 := exec.Command("redis-cli", "-p", port, "dbsize").Output()
	if err != nil || err2 != nil || err3 != nil {
		return sample{} // it is being killed
	}
	for line := range strings.Lines(string(page)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, _, _ = strings.Cut(name, "{")
		value, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil:
		case name == "disdel_jobs_running", name == "disdel_jobs_queued":
			out.busy += value
		case name == "go_goroutines":
			out.of[goroutines] = value
		case name == "go_gc_heap_live_bytes":
			out.of[heapMB] = value / (1 << 20)
		case name == "process_resident_memory_bytes":
			out.of[residentMB] = value / (1 << 20)
		}
	}
	out.of[redisConns], out.of[ownConns] = connections(server.cmd.Process.Pid, port)
	s.mu.Lock()
	s.pooled = max(s.pooled, out.of[redisConns])
	out.pooled = s.pooled
	s.mu.Unlock()
	out.of[descriptor] = float64(len(files))
	out.of[redisKeys], _ = strconv.ParseFloat(strings.TrimSpace(string(keys)), 64) //nolint:errcheck // a number
	return out
}

// connections counts the TCP connections of a process to a port, and those to itself (proc(5), net/tcp).
func connections(pid int, port string) (toPort, toItself float64) {
	own := map[string]bool{} // sockets
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, name := range names {
		if to, err := os.Readlink(name); err == nil && strings.HasPrefix(to, "socket:[") {
			own[strings.Trim(to, "socket:[]")] = true
		}
	}
	at, _ := strconv.Atoi(port) //nolint:errcheck // a number
	ends := map[string]bool{}
	for _, family := range []string{"tcp", "tcp6"} {
		list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, family)) //nolint:errcheck // none: no such family
		for line := range strings.Lines(string(list)) {
			if f := strings.Fields(line); len(f) > 9 && own[f[9]] && f[3] == "01" { // established
				if ends[f[2]+" "+f[1]] { // the other end is its own, too
					toItself++
				}
				if ends[f[1]+" "+f[2]] = true; strings.HasSuffix(f[2], fmt.Sprintf(":%04X", at)) {
					toPort++
				}
			}
		}
	}
	return toPort, toItself
}

// watch measures now and then until stop is called.
func (s *soaked) watch(every time.Duration) (stop func()) {
	ctx, end := context.WithCancel(s.t.Context())
	var over sync.WaitGroup
	over.Go(func() {
		for tick := time.NewTicker(every); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
			if now := s.measure(); now.of != nil {
				s.mu.Lock()
				s.samples = append(s.samples, now)
				s.mu.Unlock()
			}
		}
	})
	return func() {
		end()
		over.Wait()
	}
}

// draw writes the plot of all samples.
func (s *soaked) draw(file string) {
	if file == "" {
		return
	}
	c := plot.Chart{
		Title: "What the server holds", X: plot.Axis{Name: "time (minutes)"}, Y: plot.Axis{Name: "MB, or how many"},
	}
	for _, what := range []string{residentMB, heapMB, descriptor, goroutines, redisKeys, redisConns, ownConns} {
		line := plot.Line{Name: what}
		for _, one := range s.samples {
			line.Points = append(line.Points, plot.Point{
				X: plot.Span{Likely: one.at.Minutes()}, Y: plot.Span{Likely: one.of[what]},
			})
		}
		c.Lines = append(c.Lines, line)
	}
	out, err := os.Create(file)
	if err == nil {
		err = c.Write(out, plot.SVG)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	out.Close() //nolint:errcheck // it was written
	s.t.Logf("the plot is in %s", file)
}
