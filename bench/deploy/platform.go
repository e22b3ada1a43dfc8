package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/localplatform"
)

// platform is a `disdel platform up` of a home of its own.
type platform struct {
	program, home string
	host, key     string
}

// start starts one.
func start(ctx context.Context, program string, args ...string) (*platform, error) {
	home, err := os.MkdirTemp("", "bench-deploy-")
	if err != nil {
		return nil, err
	}
	p := &platform{program: program, home: home}
	if _, err := p.run(ctx, slices.Concat([]string{"platform", "up", "--detach", "--port", "0"}, args)...); err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	said := localplatform.ReadProperties(localplatform.PropertiesFile(home))
	p.host, p.key = said["APIHOST"], said["AUTH"]
	return p, nil
}

// run runs a command of the program's and returns what it printed.
func (p *platform) run(ctx context.Context, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, p.program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "DISDEL_HOME="+p.home), &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", args, err, errs.String())
	}
	return out.String(), nil
}

func (p *platform) end() error {
	_, err := p.run(context.Background(), "platform", "down")
	return errors.Join(err, os.RemoveAll(p.home))
}

// coldRuns is how many containers are started, of which the median counts.
const coldRuns = 31

// cold measures what a cluster's containers took when they were the whole program, and take now: an action's first
// invocation, to the end of a run without parameters, which evaluate refuses at once.
func cold(ctx context.Context, program, runtime string) error {
	runtime, err := filepath.Abs(runtime)
	if err != nil {
		return err
	}
	for _, of := range []struct {
		name string
		args []string
	}{{"cold_start_whole_p50_ms", nil}, {"cold_start_p50_ms", []string{"--action", runtime}}} {
		if err := coldOf(ctx, of.name, program, of.args...); err != nil {
			return err
		}
	}
	return nil
}

func coldOf(ctx context.Context, name, program string, args ...string) (err error) {
	p, err := start(ctx, program, append(args, "--pool-memory", "64GB", "--per-minute", "100000")...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	var times []float64
	for i := range coldRuns {
		action := fmt.Sprintf("/api/v1/namespaces/_/actions/cold%d", i)
		body := fmt.Sprintf(`{"exec":{"kind":%q,"main":%q,"code":"bench"},"limits":{"memory":128}}`, disdel.RuntimeKind,
			disdel.TaskEvaluate)
		if status, err := p.ask(ctx, http.MethodPut, action, body); err != nil || status != http.StatusOK {
			return errors.Join(fmt.Errorf("create an action: status %d", status), err)
		}
		begun := time.Now()
		status, err := p.ask(ctx, http.MethodPost, action+"?blocking=true", "{}")
		if err != nil || status != http.StatusBadGateway {
			return errors.Join(fmt.Errorf("a cold start: status %d", status), err)
		}
		times = append(times, time.Since(begun).Seconds()*1e3)
	}
	slices.Sort(times)
	figure(name, times[coldRuns/2], "ms")
	return nil
}

func (p *platform) ask(ctx context.Context, method, path, body string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.host+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	user, password, _ := strings.Cut(p.key, ":")
	req.SetBasicAuth(user, password)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}
