package verify_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/deploy/verify"
	"github.com/disdel/disdel/internal/test/deploytest"
	"github.com/disdel/disdel/platform"
	"github.com/disdel/disdel/service"
)

// The test binary is the containers' program, and the process whose controller is killed.
func TestMain(m *testing.M) {
	if deploytest.Served() {
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "submit" {
		if err := submit(context.Background(), os.Args[2]); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// submit is what `disdel submit FILE` does.
func submit(ctx context.Context, name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := jobfile.Parse(name, text, nil)
	if err != nil {
		return err
	}
	s, err := service.Open(ctx, config(os.Getenv("DISDEL_HOME"), os.Getenv("DISDEL_APIHOST"), os.Getenv("DISDEL_AUTH")))
	if err != nil {
		return err
	}
	defer s.Close()
	run, err := s.Submit(ctx, service.Request{Job: file.Job})
	if err != nil {
		return err
	}
	_, err = run.Wait(ctx)
	return err
}

func config(home, host, key string) service.Config {
	return service.Config{Home: home, OpenWhisk: service.OpenWhisk{Host: host, Key: key}, Pool: 2 * disdel.GB}
}

// start is an OpenWhisk of this test that takes so many activations at once.
func start(t *testing.T, atOnce int, change func(*platform.Config)) *platform.Platform {
	t.Helper()
	return deploytest.Platform(t, func(c *platform.Config) {
		if c.Limits.ConcurrentInvocations = atOnce; change != nil {
			change(c)
		}
	})
}

func run(t *testing.T, p *platform.Platform) (verify.Report, map[string]string) {
	t.Helper()
	home := t.TempDir()
	s, err := service.Open(t.Context(), config(home, p.URL(), p.AuthKey()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	report, err := verify.Run(t.Context(), verify.Config{
		Service: s, Host: p.URL(), Version: "test", Program: os.Args[0],
		Environment: append(os.Environ(), "DISDEL_HOME="+home, "DISDEL_APIHOST="+p.URL(), "DISDEL_AUTH="+p.AuthKey()),
	})
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for _, c := range report.Cases {
		states[c.Name] = c.State
	}
	return report, states
}

// Every case passes on a whole cluster.
func TestAWholeCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("trains")
	}
	report, states := run(t, start(t, 8, nil))
	want := map[string]string{
		"protocol": "passed", "limits": "passed", "out of memory": "passed", "timeout": "passed", "throttle": "passed",
		"lost container": "passed", "small job": "passed", "killed controller": "passed",
	}
	if diff := cmp.Diff(want, states); diff != "" || report.Err() != nil || report.Grade != verify.GradeFull {
		t.Errorf("%v (-want +got)\n%s%+v", report.Err(), diff, report.Cases)
	}
}

// What a cluster lacks is a case that failed, and the grade says how bad that is.
func TestAClusterWithoutTheRuntime(t *testing.T) {
	report, states := run(t, start(t, 300, func(c *platform.Config) {
		c.Kinds = map[string]platform.Kind{"other:1": c.Kinds[disdel.RuntimeKind]}
	}))
	if report.Grade != verify.GradeUnusable || states["protocol"] != "failed" || states["small job"] != "failed" ||
		states["throttle"] != "skipped" || disdel.KindOf(report.Err()) != disdel.Unavailable {
		t.Errorf("%v, %s\n%+v", report.Err(), report.Grade, report.Cases)
	}
	at := slices.IndexFunc(report.Cases, func(c verify.Case) bool { return c.Name == "small job" })
	if !strings.Contains(report.Cases[at].Detail, disdel.RuntimeKind) {
		t.Errorf("%s", report.Cases[at].Detail)
	}
}

func TestAReportIsATableForAnIssue(t *testing.T) {
	r := verify.Report{
		Host: "http://h", Version: "v1", Grade: verify.GradeUsable, Passed: 1, Failed: 1,
		Cases: []verify.Case{
			{Name: "protocol", Grade: verify.Core, State: verify.Passed, Detail: "made"},
			{Name: "timeout", Grade: verify.Full, State: verify.Failed, Detail: "a | b\nc"},
		},
	}
	var out strings.Builder
	r.Print(&out)
	want := `disdel v1 on http://h: usable (1 passed, 1 failed, 0 skipped in 0s)

| case | grade | state | seconds | what was seen |
|---|---|---|---|---|
| protocol | core | passed | 0.0 | made |
| timeout | full | failed | 0.0 | a \| b c |
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "1 of 2 cases failed: timeout") {
		t.Errorf("%v", err)
	}
}
