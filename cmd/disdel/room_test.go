package main

import (
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/aggregator"
	"github.com/disdel/disdel/model"
	"github.com/disdel/disdel/scheduler"
)

// What a job needs of the store follows from its network and from what its workers keep.
func TestStoreNeed(t *testing.T) {
	g, err := model.Build(disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	values := 0
	for _, p := range g.Params() {
		values += model.Shape(p.Shape).Len()
	}
	weights := disdel.Bytes(4 * values)
	adam := disdel.Optimizer{Adam: &disdel.Adam{LearningRate: 0.001}}
	for name, c := range map[string]struct {
		a    disdel.Aggregation
		want aggregator.Need
	}{
		"reset":   {disdel.Aggregation{}, aggregator.Need{Workers: 4, Update: weights, Reference: weights, Outputs: 2}},
		"average": {disdel.Aggregation{Optimizer: disdel.UpkeepAverage}, aggregator.Need{Workers: 4, Update: 3 * weights, Reference: 3 * weights, Outputs: 2}},
		"keep":    {disdel.Aggregation{Optimizer: disdel.UpkeepKeep}, aggregator.Need{Workers: 4, Update: weights, Reference: weights, Outputs: 2, State: 2 * weights}},
		"bfloat16": {
			disdel.Aggregation{Wire: disdel.WireBfloat16}, aggregator.Need{Workers: 4, Update: weights / 2, Reference: weights, Outputs: 2, State: weights},
		},
	} {
		var job disdel.Job
		job.Training.Optimizer, job.Distribution.Aggregation = adam, c.a
		if diff := cmp.Diff(c.want, storeNeed(job, disdel.Plan{Workers: 4, Levels: scheduler.Tree(4, 2)}, g)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A Redis that is too small for a job refuses it before anything runs, with the arithmetic; a smaller job runs on it.
func TestATooSmallRedisRefusesTheJob(t *testing.T) {
	redis, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed; scripts/test-deps.sh installs it")
	}
	d := build(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(address)
	server := exec.Command(redis, "--port", port, "--bind", "127.0.0.1", "--save", "", "--maxmemory", "8mb", "--dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	for range 250 {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	large := []string{"quickstart", "--redis", "redis://" + address + "/0", "--set", "training.epochs=1", "--set", "model={layers: [{dense: {units: 20000}}, {dense: {units: 10, activation: softmax}}]}"}
	_, errs, code := d.run(append(large, "--set", "distribution.workers=2")...)
	if code != exitRefused {
		t.Errorf("exit %d\n%s", code, errs)
	}
	for _, text := range []string{"2 updates of 5.72 MB", "2 references of 5.72 MB", "free of 8.00 MB", "maxmemory"} {
		if !strings.Contains(errs, text) {
			t.Errorf("it does not say %q:\n%s", text, errs)
		}
	}
	const warning = "set maxmemory-policy noeviction"
	if _, errs, code := d.run("quickstart", "--redis", "redis://"+address+"/0", "--set", "training.epochs=1"); code != 0 || strings.Contains(errs, warning) {
		t.Errorf("exit %d\n%s", code, errs)
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answer := make([]byte, 5)
	if _, err = c.Write([]byte("CONFIG SET maxmemory-policy allkeys-lru\r\n")); err == nil {
		_, err = io.ReadFull(c, answer)
	}
	if err != nil || string(answer) != "+OK\r\n" {
		t.Fatalf("%q, %v", answer, err)
	}
	if _, errs, code := d.run("quickstart", "--redis", "redis://"+address+"/0", "--set", "training.epochs=1"); code != 0 || !strings.Contains(errs, warning) {
		t.Errorf("a Redis that evicts: exit %d\n%s", code, errs)
	}
}
