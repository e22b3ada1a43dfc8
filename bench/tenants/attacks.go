package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/sparse"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/tenant"
)

// attackFor limits the time of one token's attacks, attackers the number of requests at once, idleConns the open
// streams and unfinished uploads beside them, and largeRecords the records of the largest origin.
const (
	attackFor    = 40 * time.Second
	attackers    = 24
	idleConns    = 300
	largeRecords = 200
)

// attacks lets one tenant attack a built server with a token of the role submit, and then another server with the role
// admin. Meanwhile another tenant lists, checks and submits.
func attacks(ctx context.Context, program string) error {
	var most attackResult
	for _, role := range []tenant.Role{tenant.RoleSubmit, tenant.RoleAdmin} {
		found, err := attackAs(ctx, program, role)
		if err != nil {
			return err
		}
		rig.Figure("one_tenant_rss_mb_"+string(role), float64(found.peak)/(1<<20), "MB")
		most.peak = max(most.peak, found.peak)
		most.sent += found.sent
		most.failed += found.failed
		most.took = append(most.took, found.took...)
	}
	rig.Figure("attack_requests", float64(most.sent), "requests of two tokens, 24 at once, 40 s each")
	rig.Figure("one_tenant_rss_mb", float64(most.peak)/(1<<20), "MB")
	rig.Figure("other_tenant_requests", float64(len(most.took)), "requests of another tenant meanwhile")
	rig.Figure("other_tenant_failed", float64(most.failed), "of these requests, counted as 40 s each")
	rig.Figure("other_tenant_p99_ms", percentile(most.took, 0.99), "ms")
	return nil
}

// attackResult is what the attacks of one token came to.
type attackResult struct {
	peak         int64 // bytes of the server's process
	sent, failed int
	took         []time.Duration // of the other tenant's requests
}

// attackAs attacks a server with a token of a role.
func attackAs(ctx context.Context, program string, role tenant.Role) (found attackResult, err error) {
	home, err := os.MkdirTemp("", "disdel-attacks-")
	if err != nil {
		return found, err
	}
	defer os.RemoveAll(home)
	tokens, err := attackHome(ctx, home, role)
	if err != nil {
		return found, err
	}
	s, err := startProgram(program, home)
	if err != nil {
		return found, err
	}
	defer s.stop()
	if err := fillHistory(ctx, home, s.url, tokens[0]); err != nil {
		return found, err
	}
	if filled, err := rig.Memory(s.cmd.Process.Pid, "VmHWM"); err == nil {
		fmt.Fprintf(os.Stderr, "bench: before the attacks the server has had %d MB\n", filled[0].MB())
	}
	limited, stop := context.WithTimeout(ctx, attackFor)
	defer stop()
	var done sync.WaitGroup
	a := &attacker{url: s.url, token: tokens[0], answers: map[string]map[int]int{}}
	a.start(limited, &done, role)
	found.took, found.failed = victim(limited, s.url, tokens[1])
	done.Wait()
	found.sent = a.report(role)
	peak, err := rig.Memory(s.cmd.Process.Pid, "VmHWM")
	if err == nil {
		found.peak = int64(peak[0])
	}
	return found, err
}

// victim lists, checks and submits as somebody at a terminal: one request at a time. A request that fails counts as
// long as the attack.
func victim(ctx context.Context, url, token string) (took []time.Duration, failed int) {
	longest := map[string]time.Duration{}
	defer func() { fmt.Fprintf(os.Stderr, "bench: the other tenant's longest requests: %v\n", longest) }()
	for ctx.Err() == nil {
		for _, r := range []attack{
			{name: "list", method: "GET", path: "/api/v1/jobs"},
			{name: "check", method: "POST", path: "/api/v1/checks", body: submissionOf(tiny, nil)},
			{name: "submit", method: "POST", path: "/api/v1/jobs", body: submissionOf(tiny, nil)},
		} {
			began := time.Now()
			status := send(ctx, url, token, r)
			longest[r.name] = max(longest[r.name], time.Since(began))
			switch {
			case status >= 200 && status < 300:
				took = append(took, time.Since(began))
			case ctx.Err() == nil:
				fmt.Fprintf(os.Stderr, "bench: the other tenant's %s was answered with %d\n", r.name, status)
				took, failed = append(took, attackFor), failed+1
			case time.Since(began) > attackFor/2: // no answer until the end is no answer
				took, failed = append(took, attackFor), failed+1
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return took, failed
}

// attackHome makes a home with two tenants, the attacker and the other one, and a dense and a sparse model of the
// attacker's.
func attackHome(ctx context.Context, home string, role tenant.Role) (tokens []string, err error) {
	s, err := service.Open(ctx, service.Config{Home: home})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for _, name := range []string{"attacker", "other"} {
		token, err := s.Tenants().Create(ctx, name, role, nil)
		if err == nil {
			err = s.Tenant(name).AddDigits(ctx)
		}
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, token)
	}
	own := s.Tenant("attacker")
	store, err := own.Datasets(ctx)
	if err != nil {
		return nil, err
	}
	source := dataset.TextSource("rows", strings.Repeat("1 1:0.5 3:2\n0 2:1\n", 50))
	rows, err := sparse.Libsvm{Source: source}.Input("clicks")
	if err == nil {
		_, err = store.AddSparse(ctx, rows, false)
	}
	if err != nil {
		return nil, err
	}
	for _, file := range []string{tiny, clicks} {
		parsed, err := jobfile.Parse("job.yaml", []byte(file), nil)
		if err != nil {
			return nil, err
		}
		run, err := own.Submit(ctx, service.Request{Job: parsed.Job, Source: service.Source{Name: "job.yaml"}})
		if err == nil {
			_, err = run.Wait(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	return tokens, nil
}

// clicks is a job that trains a sparse model.
const clicks = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: clicks}
model: {name: logistic}
data: {source: dataset://clicks, split: {train: 0.9}}
training: {epochs: 1, batchSize: 10, optimizer: {adam: {learningRate: 0.01}}}
distribution: {workers: 1}
output: {model: clicks, keep: 1000}
`

// fillHistory submits a job with the largest origin that is taken, cancels it, and stores copies of its record, as many
// such submissions would.
func fillHistory(ctx context.Context, home, url, token string) error {
	c := attack{name: "fill", method: "POST", path: "/api/v1/jobs", body: submissionOf(deep(), map[string]any{
		"origin": map[string]any{"command": "submit", "sets": largestSets()},
	})}
	status, body := answer(ctx, url, token, c)
	var rec disdel.Record
	if err := json.Unmarshal(body, &rec); err != nil || status != http.StatusCreated {
		return fmt.Errorf("the largest origin was answered with %d %.200s: %w", status, body, err)
	}
	send(ctx, url, token, attack{method: "POST", path: "/api/v1/jobs/" + string(rec.ID) + "/cancel", body: []byte("{}")})
	wait := attack{method: "GET", path: "/api/v1/jobs/" + string(rec.ID) + "/wait?timeout=1m"}
	if status, body = answer(ctx, url, token, wait); status != http.StatusOK {
		return fmt.Errorf("the wait for the largest record was answered with %d %.200s", status, body)
	}
	if err := json.Unmarshal(body, &rec); err != nil {
		return err
	}
	s, err := service.Open(ctx, service.Config{Home: home})
	if err != nil {
		return err
	}
	defer s.Close()
	h, err := s.Tenant("attacker").History(ctx)
	if err != nil {
		return err
	}
	first := string(rec.ID)
	for i := range largeRecords {
		rec.ID = disdel.JobID(fmt.Sprintf("%s%05d", first[:len(first)-5], i))
		if err := h.Save(ctx, &rec); err != nil {
			return err
		}
	}
	return nil
}

// startProgram starts the built disdel as a server of a home.
func startProgram(program, home string) (*server, error) {
	cmd := exec.Command(program, "--home", home, "--pool-memory", "2GB", "serve", "--listen", "127.0.0.1:0", "-o", "json")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	s := &server{cmd: cmd}
	var said struct{ URL string }
	if err := json.NewDecoder(out).Decode(&said); err != nil {
		s.kill()
		return nil, fmt.Errorf("the server said nothing: %w", err)
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // nothing more is expected
	s.url = said.URL
	return s, nil
}

// stop ends a server and its containers.
func (s *server) stop() {
	s.cmd.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
	killed := time.AfterFunc(20*time.Second, func() { s.cmd.Process.Kill() })
	defer killed.Stop()
	s.cmd.Wait() //nolint:errcheck // it was told to end
}
