package executor_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/executor"
)

// whisk answers as an OpenWhisk on which every activation succeeds at once.
func whisk(w http.ResponseWriter, r *http.Request) {
	const id = "0123456789abcdef0123456789abcdef"
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/":
		io.WriteString(w, `{"limits": {"max_action_memory": 536870912, "concurrent_actions": 30}}`)
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, `{"activationId": "`+id+`"}`)
	case strings.Contains(r.URL.Path, "/activations/"):
		io.WriteString(w, `{"activationId": "`+id+`", "duration": 1500, "start": 1763800000000, "end": 1763800001500,
			"response": {"status": "success", "success": true, "result": {"rows": 128}}}`)
	default:
		io.WriteString(w, `{}`)
	}
}

// A job's package and actions are made, its actions invoked without waiting, their ends waited for, and all removed.
func ExampleExecutor() {
	server := httptest.NewServer(http.HandlerFunc(whisk))
	defer server.Close()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	e, err := executor.New(executor.Config{APIHost: server.URL, AuthKey: "user:key", Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	ctx := context.Background()
	limits, err := e.Limits(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(limits.MaxMemory, "an action,", limits.Concurrent, "at once")

	train := disdel.ActionPlan{Task: disdel.TaskTrain, Name: "job-1/train", Limits: disdel.Limits{
		Memory: 256 * disdel.MB, Timeout: disdel.Millis(time.Minute),
	}}
	if err := e.Prepare(ctx, "job-1", []disdel.ActionPlan{train}); err != nil {
		log.Fatal(err)
	}
	inv := disdel.Invocation{
		ID: "round 0/train/0", Task: train.Task, Action: train.Name, Limits: train.Limits, Params: []byte(`{"worker": 0}`),
	}
	id, err := e.Invoke(ctx, inv)
	if err != nil {
		log.Fatal(err)
	}
	a, err := e.Wait(ctx, inv, id)
	fmt.Println(a.Outcome, a.Rows, "rows in", a.Duration, err)
	_, down := e.Outage()
	fmt.Println("gone:", down)
	fmt.Println(e.Remove(ctx, "job-1"))
	// Output:
	// 512 MB an action, 30 at once
	// success 128 rows in 1.5s <nil>
	// gone: false
	// <nil>
}

// A process that died says nothing of why; its last heartbeats do.
func ExampleClassify() {
	inv := disdel.Invocation{
		Task: disdel.TaskTrain, Member: 2,
		Limits: disdel.Limits{Memory: 256 * disdel.MB, Timeout: disdel.Millis(time.Minute)},
	}
	died := executor.Record{
		Status: "action developer error", Duration: 4 * time.Second,
		Result: []byte(`{"error": "The action did not produce a valid response and exited unexpectedly."}`),
	}
	near := []disdel.Beat{{At: disdel.Millis(3 * time.Second), Resident: 250 * disdel.MB, Peak: 252 * disdel.MB}}
	for _, beats := range [][]disdel.Beat{near, {{Resident: 60 * disdel.MB, Peak: 60 * disdel.MB}}} {
		a := executor.Classify(inv, died, beats)
		fmt.Println(a.Outcome, a.Peak, a.Suspected)
	}
	// Output:
	// outOfMemory 252 MB false
	// developerError 60.0 MB false
}

// A package that stays is read with what its actions are and may have.
func ExampleExecutor_Deployment() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.URL.Path, "/packages/") {
			io.WriteString(w, `{"name": "disdel", "actions": [{"name": "train"}]}`)
			return
		}
		io.WriteString(w, `{"name": "train", "version": "0.0.3", "exec": {"kind": "disdel:1", "main": "train", "code": "disdel"},
			"limits": {"memory": 512, "timeout": 300000, "logs": 1}, "annotations": [{"key": "description", "value": "trains"}]}`)
	}))
	defer server.Close()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	e, err := executor.New(executor.Config{APIHost: server.URL, AuthKey: "user:key", Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	d, err := e.Deployment(context.Background(), "disdel")
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range d.Actions {
		fmt.Println(a.Name, a.Version, a.Kind, a.Memory, a.Timeout, a.Annotations["description"])
	}
	// Output: train 0.0.3 disdel:1 512 MB 5m0s trains
}
