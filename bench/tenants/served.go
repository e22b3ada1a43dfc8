package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/process"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/api"
	"github.com/disdel/disdel/service/tenant"
)

// tenants is how many share the server.
const tenants = 10

// tiny is a job that is over soon: what is measured is what lies around it.
const tiny = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: tiny}
model: {layers: [{flatten: {}}, {dense: {units: 10}}]}
data: {source: dataset://digits, split: {train: 1, validation: 0, seed: 1}}
training: {epochs: 1, batchSize: 64, optimizer: {adam: {learningRate: 0.01}}}
distribution: {workers: 1}
output: {model: tiny, keep: 1000}
`

// servedBy is the word that this program serves a home for.
const servedBy = "serve-home"

// serveHome is the server's process: it serves until it is told to end.
func serveHome(ctx context.Context, home string) error {
	s, err := service.Open(ctx, service.Config{Home: home, TakeOver: true, Pool: disdel.GB})
	if err != nil {
		return err
	}
	defer s.Close()
	operator, err := api.OperatorToken(home)
	if err != nil {
		return err
	}
	l, err := api.Listen("127.0.0.1:0", "", "", false)
	if err != nil {
		return err
	}
	if err := s.Attend(ctx); err != nil {
		return err
	}
	fmt.Println(l.URL())
	return api.Serve(ctx, l, api.Config{Service: s, Operator: operator, PerMinute: 1 << 30}, time.Second)
}

// server is a process that serves a home.
type server struct {
	cmd *exec.Cmd
	url string
}

func startServer(home string) (*server, error) {
	cmd := exec.Command(os.Args[0], servedBy, home)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		cmd.Process.Kill() //nolint:errcheck // it has ended
		cmd.Wait()         //nolint:errcheck // the same
		return nil, fmt.Errorf("the server said nothing: %w", err)
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // nothing more is expected
	return &server{cmd, strings.TrimSpace(line)}, nil
}

func (s *server) kill() {
	s.cmd.Process.Kill() //nolint:errcheck // it may have ended
	s.cmd.Wait()         //nolint:errcheck // killed
}

// users makes tenants with data, and says with which tokens they come in.
func users(ctx context.Context, home string) (tokens []string, err error) {
	s, err := service.Open(ctx, service.Config{Home: home})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for i := range tenants {
		name := "t" + strconv.Itoa(i)
		token, err := s.Tenants().Create(ctx, name, tenant.RoleSubmit, nil)
		if err == nil {
			err = s.Tenant(name).AddDigits(ctx)
		}
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

// submission is a job that was acknowledged.
type submission struct {
	id     disdel.JobID
	tenant int
}

// tinyRequest is the tiny job, to submit.
func tinyRequest() (service.Request, error) {
	file, err := jobfile.Parse("tiny.yaml", []byte(tiny), nil)
	return service.Request{Job: file.Job, Source: service.Source{Name: "tiny.yaml"}}, err
}

// submitted has the tenants submit jobs side by side, and says what was acknowledged and how long each submit took.
func submitted(ctx context.Context, url string, tokens []string, jobs int) ([]submission, []time.Duration, error) {
	request, err := tinyRequest()
	if err != nil {
		return nil, nil, err
	}
	var (
		mu     sync.Mutex
		all    []submission
		took   []time.Duration
		failed error
		done   sync.WaitGroup
	)
	for i, token := range tokens {
		done.Go(func() {
			at, err := client.Remote(client.Server{URL: url, Token: token})
			for range jobs / len(tokens) {
				if err != nil {
					break
				}
				began := time.Now()
				var run client.Run
				run, err = at.Jobs.Submit(ctx, request)
				mu.Lock()
				if err == nil {
					all, took = append(all, submission{run.ID(), i}), append(took, time.Since(began))
				}
				mu.Unlock()
			}
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	}
	done.Wait()
	return all, took, failed
}

// outcome waits for the end of all, and counts those that are lost: acknowledged, and without a success, however long
// one waits; and those that ran twice: each run that came to its end made a version of the model.
func outcome(ctx context.Context, home string, all []submission) (lost, doubled int, err error) {
	s, err := service.Open(ctx, service.Config{Home: home})
	if err != nil {
		return 0, 0, err
	}
	defer s.Close()
	h, err := s.History(ctx)
	if err != nil {
		return 0, 0, err
	}
	of := map[int]int{}
	for _, one := range all {
		of[one.tenant]++
		rec, err := h.Get(ctx, one.id)
		for err == nil && rec.Status.Unfinished() && ctx.Err() == nil {
			time.Sleep(time.Second)
			rec, err = h.Get(ctx, one.id)
		}
		if err != nil || rec.Status != disdel.StatusSucceeded {
			lost++
			fmt.Fprintf(os.Stderr, "bench: %s is %v: %v %v\n", one.id, rec.Status, rec.Failure, err)
		}
	}
	for tenant, jobs := range of {
		models, err := s.Tenant("t" + strconv.Itoa(tenant)).Models(ctx)
		if err != nil {
			return lost, doubled, err
		}
		list, err := models.Versions(ctx, "tiny")
		if err != nil {
			return lost, doubled, err
		}
		doubled += max(0, len(list)-jobs)
	}
	return lost, doubled, nil
}

// served is many small jobs of ten tenants on one server.
func served(ctx context.Context, jobs int) error {
	home, err := os.MkdirTemp("", "disdel-served-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	tokens, err := users(ctx, home)
	if err != nil {
		return err
	}
	s, err := startServer(home)
	if err != nil {
		return err
	}
	defer s.kill()
	began, most := time.Now(), int64(0)
	watching, stop := context.WithCancel(ctx)
	var watched sync.WaitGroup
	watched.Go(func() {
		for watching.Err() == nil {
			if n, ok := process.Resident(s.cmd.Process.Pid); ok {
				most = max(most, n)
			}
			time.Sleep(200 * time.Millisecond)
		}
	})
	all, took, err := submitted(ctx, s.url, tokens, jobs)
	var lost, doubled int
	if err == nil {
		lost, doubled, err = outcome(ctx, home, all)
	}
	stop()
	watched.Wait()
	if err != nil {
		return err
	}
	rig.Figure("served_jobs", float64(len(all)), "jobs of ten tenants")
	rig.Figure("lost", float64(lost), "jobs")
	rig.Figure("doubled", float64(doubled), "jobs")
	rig.Figure("submit_p50_ms", percentile(took, 0.5), "ms")
	rig.Figure("submit_p99_ms", percentile(took, 0.99), "ms")
	rig.Figure("serve_rss_mb", float64(most)/(1<<20), "MB")
	rig.Figure("served_s", time.Since(began).Seconds(), "s")
	return nil
}

// takeover kills one of two servers again and again while both have jobs. It measures the time until the other server
// has the jobs of the killed one.
func takeover(ctx context.Context, kills int) error {
	home, err := os.MkdirTemp("", "disdel-takeover-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	tokens, err := users(ctx, home)
	if err != nil {
		return err
	}
	var pair [2]*server
	for i := range pair {
		if pair[i], err = startServer(home); err != nil {
			return err
		}
	}
	defer func() {
		for _, s := range pair {
			s.kill()
		}
	}()
	s, err := service.Open(ctx, service.Config{Home: filepath.Clean(home)})
	if err != nil {
		return err
	}
	defer s.Close()
	h, err := s.History(ctx)
	if err != nil {
		return err
	}
	var all []submission
	var took []time.Duration
	for n := range kills {
		victim := pair[n%2]
		more, _, err := submitted(ctx, victim.url, tokens[:4], 4)
		if err != nil {
			return err
		}
		all = append(all, more...)
		killed := time.Now()
		victim.kill()
		for _, one := range more {
			for {
				rec, err := h.Get(ctx, one.id)
				if err != nil {
					return err
				}
				if !rec.Status.Unfinished() || owned(rec, killed) {
					break
				}
				if time.Since(killed) > mostTakeover {
					fmt.Fprintf(os.Stderr, "bench: nobody took %s over: %+v\n", one.id, rec.Transitions)
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			took = append(took, time.Since(killed))
		}
		if pair[n%2], err = startServer(home); err != nil {
			return err
		}
	}
	lost, doubled, err := outcome(ctx, home, all)
	if err != nil {
		return err
	}
	rig.Figure("takeover_kills", float64(kills), "servers")
	rig.Figure("takeover_lost", float64(lost), "jobs")
	rig.Figure("takeover_doubled", float64(doubled), "jobs")
	rig.Figure("takeover_p50_s", percentile(took, 0.5)/1000, "s")
	rig.Figure("takeover_s", percentile(took, 1)/1000, "s, the longest")
	return nil
}

// mostTakeover is how long a job is waited for that nobody takes over.
const mostTakeover = time.Minute

// owned tells whether a job was queued by another server since a moment.
func owned(rec disdel.Record, since time.Time) bool {
	last := rec.Transitions[len(rec.Transitions)-1]
	for _, t := range rec.Transitions {
		if t.To == disdel.StatusQueued && t.At.After(since.Add(-time.Millisecond)) {
			return true
		}
	}
	return last.At.After(since)
}

// percentile is that of times, in milliseconds.
func percentile(took []time.Duration, share float64) float64 {
	var all []float64
	for _, t := range took {
		all = append(all, t.Seconds()*1000)
	}
	return rig.Percentile(all, share)
}
