package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// peerFolder has the programs of the peers, from the repository's root on.
const peerFolder = "bench/peer"

// tfResult is what tf_action.py answers.
type tfResult struct {
	Import, Prepare, Compute       float64
	First                          float64 // what the first step took longer than those after it on average
	Start, Started, Prepared, Peak disdel.Bytes
	Seen                           []float64
	TensorFlow                     string
}

// tfArguments are those of tf_action.py for a task, whose rows are in a file.
func (r *testbed) tfArguments(ctx context.Context, t task, seed int64, devices int) (map[string]any, error) {
	in, err := r.sources.of(ctx, t.data, t.rows)
	if err != nil {
		return nil, err
	}
	rows := first(in.Train, t.rows)
	file := filepath.Join(r.home, "rows-"+t.dataName())
	if _, err := os.Stat(file); err != nil {
		if err := rowsFile(file, rows); err != nil {
			return nil, err
		}
	}
	peer, err := filepath.Abs(peerFolder)
	return map[string]any{
		"peer": peer, "rows": file, "count": rows.Len(), "sample": rows.Shape, "resize": t.resize, "network": t.network,
		"classes": max(in.Classes, 1), "batch": t.batch, "epochs": t.epochs, "seed": seed, "threads": max(1,
			threads()/devices),
		"devices": devices,
	}, err
}

// tfDefault runs a job as a Python action with TensorFlow in one container of so much memory.
func (r *testbed) tfDefault(ctx context.Context, t task, turn int, seed int64, limits disdel.Limits) (outcome, error) {
	code, err := os.ReadFile(filepath.Join(peerFolder, "tf_action.py"))
	if err != nil {
		return outcome{}, err
	}
	args, err := r.tfArguments(ctx, t, seed, 1)
	if err != nil {
		return outcome{}, err
	}
	action := "/actions/" + string(r.next())
	w := whisk{r.platform.URL(), r.platform.AuthKey()}
	o := t.outcome(envDefaultTF, turn, time.Now())
	o.Limit = limits.Memory
	a, err := w.run(ctx, action, map[string]any{
		"exec":   map[string]any{"kind": r.python, "code": string(code)},
		"limits": map[string]any{"memory": limits.Memory.MB(), "timeout": time.Duration(limits.Timeout).Milliseconds()},
	}, args)
	o.Wall = time.Since(o.begun).Seconds()
	if err != nil {
		return o, err
	}
	if o.Passed = a.Response.Success; !o.Passed {
		o.Failed, o.Lost = 1, float64(a.Duration)/1000
		o.Why = a.Response.Status + ": " + string(a.Response.Result)
		return o, nil
	}
	var got tfResult
	if err := json.Unmarshal(a.Response.Result, &got); err != nil {
		return o, err
	}
	o.take(got)
	if p := a.peak(); p > 0 { // as it is counted for all containers
		o.Action, o.Sum = p, p
	}
	return o, nil
}

// tfBare runs a job with TensorFlow in one process, mirrored on as many devices as there are processors.
func (r *testbed) tfBare(ctx context.Context, python string, t task, turn int, seed int64) (outcome, error) {
	args, err := r.tfArguments(ctx, t, seed, threads())
	if err != nil {
		return outcome{}, err
	}
	text, err := json.Marshal(args)
	if err != nil {
		return outcome{}, err
	}
	o := t.outcome(envBareTF, turn, time.Now())
	var got tfResult
	err = r.call(ctx, &got, python, filepath.Join(peerFolder, "tf_action.py"), string(text))
	o.Passed, o.Wall = err == nil, time.Since(o.begun).Seconds()
	o.take(got)
	return o, err
}

func (o *outcome) take(got tfResult) {
	o.Action, o.Sum, o.Started, o.Prepared = got.Peak, got.Peak, got.Started, got.Prepared
	o.Prepare, o.Compute, o.Seen = got.Import+got.Prepare, got.Compute, got.Seen
	o.Begin = got.Import + got.First
}

// whisk asks an OpenWhisk what the executor does not: actions of other kinds than ours.
type whisk struct{ host, key string }

// whiskActivation is a record of OpenWhisk's, as far as it is read.
type whiskActivation struct {
	Duration int64 // ms
	Response struct {
		Success bool
		Status  string
		Result  json.RawMessage
	}
	Annotations []struct {
		Key   string
		Value json.RawMessage
	}
}

// peak is the memory that was measured, 0 where it was not.
func (a *whiskActivation) peak() (n disdel.Bytes) {
	for _, v := range a.Annotations {
		if v.Key == "peakMemory" && json.Unmarshal(v.Value, &n) != nil {
			return 0
		}
	}
	return n
}

func (w whisk) do(ctx context.Context, method, path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, w.host+"/api/v1/namespaces/_"+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	user, password, _ := strings.Cut(w.key, ":")
	req.SetBasicAuth(user, password)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return &disdel.Error{
			Kind: map[bool]disdel.Kind{true: disdel.NotFound, false: disdel.Invalid}[res.StatusCode == http.StatusNotFound],
			Op:   method + " " + path, Msg: fmt.Sprintf("%s: %s", res.Status, text),
		}
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

// run makes an action, invokes it once, waits for its end and takes it away.
func (w whisk) run(ctx context.Context, action string, what, args map[string]any) (a whiskActivation, err error) {
	if err := w.do(ctx, http.MethodPut, action+"?overwrite=true", what, nil); err != nil {
		return a, err
	}
	var id struct{ ActivationID string }
	if err := w.do(ctx, http.MethodPost, action, args, &id); err != nil {
		return a, err
	}
	if a, err = w.wait(ctx, id.ActivationID); err != nil {
		return a, err
	}
	return a, w.do(ctx, http.MethodDelete, action, nil, nil)
}

// wait is the record of an activation, once there is one.
func (w whisk) wait(ctx context.Context, id string) (a whiskActivation, err error) {
	for {
		err := w.do(ctx, http.MethodGet, "/activations/"+id, nil, &a)
		if disdel.KindOf(err) != disdel.NotFound {
			return a, err
		}
		select {
		case <-ctx.Done():
			return a, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
