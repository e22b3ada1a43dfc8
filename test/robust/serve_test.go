package robust

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/disdel/disdel"
)

// serving is a disdel serve that runs, and what its operator needs to call it.
type serving struct {
	*process
	t          *testing.T
	url, token string
	client     *http.Client
}

var servesAt = regexp.MustCompile(`"url": *"(http://[^"]+)"`)

// serve starts disdel serve in a home and waits until it listens.
func serve(t *testing.T, d disdelIn, flags ...string) *serving {
	t.Helper()
	p := &process{cmd: d.command(append(slices.Clone(flags), "serve", "--listen", "127.0.0.1:0", "-o", "json")...)}
	said := filepath.Join(t.TempDir(), "serve.json")
	out, err := os.Create(said)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p.cmd.Stdout, p.cmd.Stderr = out, &p.err
	p.launch(t)
	s := &serving{process: p, t: t, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(s.client.CloseIdleConnections)
	await(t, "disdel serve to listen", func() bool {
		if p.ended() {
			t.Fatalf("disdel serve ended: %s", p.err.String())
		}
		text, _ := os.ReadFile(said) // nothing yet
		if m := servesAt.FindSubmatch(text); m != nil {
			s.url = string(m[1])
		}
		return s.url != ""
	})
	token, err := os.ReadFile(filepath.Join(d.home, "server.token"))
	if err != nil {
		t.Fatal(err)
	}
	s.token = strings.TrimSpace(string(token))
	return s
}

// await looks again and again until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * patience); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %s in vain", what)
		}
	}
}

// call sends a request of the operator's and returns the status and the body of the answer.
func (s *serving) call(method, path string, body []byte) (int, []byte, error) {
	req, err := http.NewRequest(method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	res, err := s.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return res.StatusCode, data, err
}

// ask is call for a request that must pass. It decodes the answer.
func (s *serving) ask(method, path string, body []byte, into any) {
	s.t.Helper()
	status, data, err := s.call(method, path, body)
	if err == nil && status < 300 {
		err = json.Unmarshal(data, into)
	}
	if err != nil || status >= 300 {
		s.t.Fatalf("%s %s: %d %v %s\n%s", method, path, status, err, data, tail(s.err.Bytes()))
	}
}

// submit submits a job file and returns the job's id.
func (s *serving) submit(file string) string {
	s.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	body, err := json.Marshal(map[string]string{"file": string(text)})
	if err != nil {
		s.t.Fatal(err)
	}
	var rec disdel.Record
	s.ask("POST", "/api/v1/jobs", body, &rec)
	return string(rec.ID)
}

// record is a job's record as the server has it.
func (s *serving) record(job string) (rec disdel.Record) {
	s.t.Helper()
	s.ask("GET", "/api/v1/jobs/"+job, nil, &rec)
	return rec
}

// ends waits until a job has ended or is paused.
func (s *serving) ends(job string) (rec disdel.Record) {
	s.t.Helper()
	await(s.t, job+" to end", func() bool {
		rec = s.record(job)
		return !rec.Status.Unfinished()
	})
	return rec
}

// smallJobs has ten tenants submit small jobs to one server at once: each is acknowledged, succeeds, and runs once.
// DISDEL_ROBUST_JOBS says how many; there are 1,000.
func smallJobs(c *trial) {
	jobs := "1000"
	if text := os.Getenv("DISDEL_ROBUST_JOBS"); text != "" {
		jobs = text
	}
	found := tenantsBench(c.t, "-parts", "served", "-served", jobs)
	if fmt.Sprint(found["served_jobs"]) != jobs || found["lost"] != 0 || found["doubled"] != 0 {
		c.t.Errorf("%s jobs were submitted: %v", jobs, found)
	}
}

// floods has one tenant send the largest requests that it may, 24 at once: the server stays within 512 MB, half of
// what the manifest of deploy/cluster gives it, and answers 99 of 100 requests of another tenant within a second.
func floods(c *trial) {
	found := tenantsBench(c.t, "-parts", "attacks", "-program", program(c.t))
	if found["attack_requests"] == 0 || found["other_tenant_requests"] == 0 || found["one_tenant_rss_mb"] > 512 {
		c.t.Errorf("one tenant took the server, or nothing attacked it: %v", found)
	}
	if found["other_tenant_failed"] != 0 || found["other_tenant_p99_ms"] > 1000 {
		c.t.Errorf("another tenant waited, or got no answer: %v", found)
	}
}

// madeOf builds a release of the commit twice. The script also checks the sums.
func madeOf(c *trial) {
	out, err := exec.CommandContext(c.t.Context(), "../../scripts/release-check.sh").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "figure reproducible 1 ") {
		c.t.Errorf("%v\n%s", err, out)
	}
	tools := exec.CommandContext(c.t.Context(), "go", "-C", "../../tools", "test", "./release")
	if out, err := tools.CombinedOutput(); err != nil {
		c.t.Errorf("%v\n%s", err, out)
	}
}

var figureLine = regexp.MustCompile(`(?m)^figure (\S+) (\S+) `)

// tenantsBench runs bench/tenants and returns the figures that it prints.
func tenantsBench(t *testing.T, args ...string) map[string]float64 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bench-tenants")
	build := exec.Command("go", "build", "-o", path, "./tenants")
	build.Dir = "../../bench" // a module of its own
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, m := range figureLine.FindAllStringSubmatch(string(out), -1) {
		if found[m[1]], err = strconv.ParseFloat(m[2], 64); err != nil {
			t.Fatalf("%q: %v", m[0], err)
		}
	}
	return found
}

// What several clients do at random to the jobs of one server.
const (
	randomJobs    = 6
	randomClients = 4
	randomCalls   = 30 // of each client
)

// stopsAndStarts has four clients cancel, pause and resume six jobs at random. Each record tells of legal transitions
// only, and each job ends with the result that it has when it is left alone.
func stopsAndStarts(c *trial) {
	t, d := c.t, newHome(c.t)
	file := d.job(t, "random", shortJob(30)+"output: {model: random, keep: 100}\n")
	want := d.weights(t, record(t, d.run(t, patience, "submit", file, "-o", "json", "-q")))
	s := serve(t, d)
	var jobs []string
	for range randomJobs {
		jobs = append(jobs, s.submit(file))
	}
	var clients sync.WaitGroup
	for n := range randomClients {
		rng := rand.New(rand.NewPCG(c.seed, uint64(n)))
		clients.Go(func() { atRandom(t, s, jobs, rng) })
	}
	clients.Wait()
	stops := 0
	for _, job := range jobs {
		var rec disdel.Record
		await(t, job+" to end for good", func() bool {
			rec = s.record(job)
			if rec.Status == disdel.StatusPaused || rec.Status == disdel.StatusCanceled {
				s.call("POST", "/api/v1/jobs/"+job+"/resume", nil) //nolint:errcheck // it is asked for again
			}
			return rec.Status == disdel.StatusSucceeded || rec.Status == disdel.StatusFailed
		})
		stops += legal(t, rec)
		if rec.Status != disdel.StatusSucceeded {
			t.Errorf("%s ended as %v: %v", job, rec.Status, rec.Failure)
		} else if got := d.weights(t, rec); got != want {
			t.Errorf("%s: weights %s, want %s", job, got, want)
		}
	}
	t.Logf("the jobs were stopped %d times", stops)
	if stops < randomJobs {
		t.Errorf("the jobs were stopped %d times: the test tests too little", stops)
	}
}

// atRandom is one client. The server may refuse what the job's state does not allow; it may not fail.
func atRandom(t *testing.T, s *serving, jobs []string, rng *rand.Rand) {
	for range randomCalls {
		what := []string{"cancel", "pause", "resume", "resume"}[rng.IntN(4)]
		path := "/api/v1/jobs/" + jobs[rng.IntN(len(jobs))] + "/" + what
		status, data, err := s.call("POST", path, nil)
		if err != nil || status >= 500 || status == http.StatusNotFound {
			t.Errorf("%s: %d %v %s", path, status, err, data)
		}
		time.Sleep(time.Duration(rng.Int64N(int64(200 * time.Millisecond)))) // the calls fall into different states
	}
}

// legal checks the transitions of a record, and returns how often the job was paused or canceled.
func legal(t *testing.T, rec disdel.Record) (stops int) {
	t.Helper()
	was := disdel.StatusUnknown
	for _, change := range rec.Transitions {
		if !was.CanTransitionTo(change.To) {
			t.Errorf("%s: %v became %v: %+v", rec.ID, was, change.To, rec.Transitions)
		}
		if change.To == disdel.StatusPaused || change.To == disdel.StatusCanceled {
			stops++
		}
		was = change.To
	}
	if was != rec.Status {
		t.Errorf("%s is %v, its last transition is to %v", rec.ID, rec.Status, was)
	}
	return stops
}

// How many read a job's events at once: those that break off again and again, and those that never read.
const (
	restless = 40
	deaf     = 20
)

// readers has many clients follow one job. Some break off after a drawn number of events and go on with the last id
// that they saw, others never read. Each of the former has all events but replaced progress, once and in order, and the
// job is not disturbed.
func readers(c *trial) {
	t, d := c.t, newHome(c.t)
	file := d.job(t, "followed", shortJob(12)+"output: {model: followed, keep: 100}\n")
	want := d.weights(t, record(t, d.run(t, patience, "submit", file, "-o", "json", "-q")))
	s := serve(t, d)
	before := heldBy(t, s.cmd.Process.Pid)
	job := s.submit(file)
	path := "/api/v1/jobs/" + job + "/events"
	for range deaf {
		neverRead(t, s, path, s.token, 1)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*patience)
	defer stop()
	seen := make([][]string, restless)
	var following sync.WaitGroup
	for n := range restless {
		rng := rand.New(rand.NewPCG(c.seed, uint64(n)))
		following.Go(func() { seen[n] = follow(ctx, t, s, path, rng) })
	}
	following.Wait()
	rec := s.ends(job)
	if got := d.weights(t, rec); got != want {
		t.Errorf("weights %s, want %s", got, want)
	}
	for n, events := range seen {
		if !slices.Equal(events, seen[0]) {
			t.Errorf("reader %d saw\n%v\nand reader 0\n%v", n, events, seen[0])
		}
	}
	after := heldBy(t, s.cmd.Process.Pid)
	t.Logf("%d events for each reader; %+v before, %+v after", len(seen[0]), before, after)
	if len(seen[0]) == 0 || !strings.HasPrefix(seen[0][len(seen[0])-1], "finished") {
		t.Errorf("the readers saw %v", seen[0])
	}
}

// follow reads a job's events until its end, over connections that break off after 1 to 40 events. It returns the kind
// and number of all but progress, of which the server keeps only the newest.
func follow(ctx context.Context, t *testing.T, s *serving, path string, rng *rand.Rand) (events []string) {
	last, newest := "", 0
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
		if err != nil {
			t.Error(err)
			return events
		}
		req.Header.Set("Authorization", "Bearer "+s.token)
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%s: %v", path, err)
			return events
		}
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 16<<20)
		id := ""
		for left := 1 + rng.IntN(40); left > 0 && lines.Scan(); {
			if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				id = text
			}
			kind, ok := strings.CutPrefix(lines.Text(), "event: ")
			if !ok {
				continue
			}
			if kind == "reset" { // all events come again: another process, or the job has ended
				events, newest = nil, 0
				continue
			}
			_, digits, _ := strings.Cut(id, ".")
			number, err := strconv.Atoi(digits)
			if err != nil || number <= newest {
				t.Errorf("event %s came after %d", id, newest)
			}
			last, newest = id, number
			left--
			if kind != "progress" {
				events = append(events, fmt.Sprintf("%s %d", kind, number))
			}
			if kind == "finished" {
				res.Body.Close()
				return events
			}
		}
		res.Body.Close()
	}
	t.Errorf("the events of %s have no end", path)
	return events
}

// neverRead sends a request so many times over one connection, and reads no answer until the test ends.
func neverRead(t *testing.T, s *serving, path, token string, times int) {
	t.Helper()
	host := strings.TrimPrefix(s.url, "http://")
	c, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetReadBuffer(4 << 10) //nolint:errcheck // a larger one is filled later
	}
	go func() {
		for range times {
			_, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", path, host, token)
			if err != nil {
				return
			}
		}
	}()
}

// mostScrapes is more than fits into the buffers of a connection that nobody reads from.
const mostScrapes = 1 << 20

// scrapes has clients ask for the metrics again and again and read nothing, while a job runs: the job has the result
// that it has when it is left alone, and the server goes on answering others.
func scrapes(c *trial) {
	t, d := c.t, newHome(c.t)
	file := d.job(t, "scraped", shortJob(6)+"output: {model: scraped, keep: 100}\n")
	alone := record(t, d.run(t, patience, "submit", file, "-o", "json", "-q"))
	made := d.run(t, patience, "tenant", "create", "--role", "read", "scraper", "-o", "json")
	var scraper struct{ Token string }
	if err := json.Unmarshal([]byte(made.out), &scraper); err != nil || scraper.Token == "" {
		t.Fatal(made)
	}
	s := serve(t, d)
	job := s.submit(file)
	for range 20 {
		neverRead(t, s, "/metrics", scraper.Token, mostScrapes)
	}
	rec := s.ends(job)
	if rec.Status != alone.Status {
		t.Fatalf("%v: %v", rec.Status, rec.Failure)
	}
	if got, want := d.weights(t, rec), d.weights(t, alone); got != want {
		t.Errorf("weights %s, want %s", got, want)
	}
	if status, data, err := s.call("GET", "/metrics", nil); err != nil || status != http.StatusOK ||
		!bytes.Contains(data, []byte("disdel_jobs_ended_total")) {
		t.Errorf("%d %v %.200s", status, err, data)
	}
	legal(t, rec)
}

// fullDisk fills the disk of a server's home while a job runs, lets the job end, and frees the disk: the same process
// brings the end into the history, and the job can be resumed.
func fullDisk(c *trial) {
	t := c.t
	d := disdelIn{path: program(t), home: filepath.Join(t.TempDir(), "home")}
	if err := os.MkdirAll(d.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", d.home, "tmpfs", 0, "size=48m,mode=0700"); err != nil {
		t.Skipf("a disk of its own takes the right to mount one: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(d.home, unix.MNT_DETACH) }) //nolint:errcheck // the test is over
	if r := d.run(t, patience, "dataset", "add", "digits", "-q"); r.code != 0 {
		t.Fatal(r)
	}
	s := serve(t, d)
	job := s.submit(d.job(t, "full", shortJob(1000)))
	await(t, "a checkpoint", func() bool {
		found, _ := filepath.Glob(filepath.Join(d.home, "models", "checkpoints", "*", "*"))
		return len(found) > 0
	})
	ballast := filepath.Join(d.home, "ballast")
	var rec disdel.Record
	await(t, "the job to end", func() bool {
		fill(ballast) // with what the job has freed meanwhile, too
		rec = s.record(job)
		return !rec.Status.Unfinished()
	})
	if rec.Status != disdel.StatusFailed || rec.Failure == nil || rec.Failure.Kind != disdel.NoSpace {
		t.Errorf("on a full disk the job is %v: %v", rec.Status, rec.Failure)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	await(t, "the history to have the end", func() bool {
		left, _ := filepath.Glob(filepath.Join(d.home, "unsaved", "*"))
		return len(left) == 0
	})
	if got := s.record(job); got.Status != disdel.StatusFailed {
		t.Errorf("afterwards the job is %v", got.Status)
	}
	var again disdel.Record
	s.ask("POST", "/api/v1/jobs/"+job+"/resume", nil, &again)
	await(t, "the resumed job to train", func() bool { return len(s.record(job).Rounds) > len(rec.Rounds) })
	s.ask("POST", "/api/v1/jobs/"+job+"/cancel", nil, &again)
	legal(t, s.ends(job))
}

// fill appends to a file until its disk is full.
func fill(file string) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return // not even a file fits
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
}

// lostHistoryOfServe takes the history away from a server while a job runs, for DISDEL_ROBUST_OUTAGE or for two
// seconds, and brings it back: the job is not stopped, and the same process delivers its end, once.
func lostHistoryOfServe(c *trial) {
	t, d := c.t, newHome(c.t)
	outage := 2 * time.Second
	if text := os.Getenv("DISDEL_ROBUST_OUTAGE"); text != "" {
		var err error
		if outage, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	start, url := historyServer(t)
	first := start()
	s := serve(t, d, "--couchdb", url)
	job := s.submit(d.job(t, "away", shortJob(12)))
	await(t, "a round", func() bool { return len(s.record(job).Rounds) > 0 })
	first.Process.Kill() //nolint:errcheck // it may have ended
	unsaved := filepath.Join(d.home, "unsaved", job+".json")
	await(t, "the job to end", func() bool {
		text, err := os.ReadFile(unsaved)
		return err == nil && bytes.Contains(text, []byte(`"succeeded"`))
	})
	time.Sleep(outage) // the fault itself
	start()
	await(t, "the history to have the end", func() bool { return !exists(unsaved) })
	list := d.run(t, patience, "history", "--couchdb", url, "-o", "json")
	found := 0
	for _, rec := range records(t, list) {
		if string(rec.ID) == job && rec.Status == disdel.StatusSucceeded {
			found++
		}
	}
	if found != 1 {
		t.Errorf("the record is there %d times: %v", found, list)
	}
}
