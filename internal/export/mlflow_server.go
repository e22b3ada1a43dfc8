package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// MLflowServer is a running mlflow server. Its REST API is the same in versions 2 and 3.
type MLflowServer struct {
	URL      string // http:// or https://, with a user and a password if it asks for them
	User     string // with Password; "": those of URL
	Password string
	Token    string // sent as a bearer token; "": none
}

// mlflowTimeout bounds one request.
const mlflowTimeout = time.Minute

// MLflow's bounds on one request.
const (
	mostMetrics    = 1000
	mostParameters = 100
)

// Send writes jobs as runs of the experiment disdel. A job that was sent before gets its new figures and its new status.
// It returns Invalid for an address that is none, Denied if the server refuses the user, and Unavailable if it does not
// answer or fails.
func (s MLflowServer) Send(ctx context.Context, list []disdel.Record) error {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "export jobs",
			Msg:  fmt.Sprintf("%q is no address of an MLflow server", disdel.Redacted(s.URL)),
			Hint: "write --url http://HOST:PORT, for example http://127.0.0.1:5000",
		}
	}
	id, err := s.experiment(ctx)
	for i := range list {
		if err == nil {
			err = s.sendJob(ctx, id, &list[i])
		}
	}
	return err
}

// experiment is the id of the experiment disdel, which is created if it is missing.
func (s MLflowServer) experiment(ctx context.Context) (string, error) {
	var found struct {
		Experiment struct {
			ID string `json:"experiment_id"`
		} `json:"experiment"`
		ID string `json:"experiment_id"`
	}
	err := s.call(ctx, http.MethodGet, "experiments/get-by-name?experiment_name=disdel", nil, &found)
	if errors.Is(err, disdel.NotFound) {
		err = s.call(ctx, http.MethodPost, "experiments/create", map[string]any{"name": "disdel"}, &found)
		return found.ID, err
	}
	return found.Experiment.ID, err
}

// mlflowPair is a parameter or a tag.
type mlflowPair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func pairs(texts map[string]string) (out []mlflowPair) {
	for key, value := range texts {
		out = append(out, mlflowPair{key, value})
	}
	slices.SortFunc(out, func(a, b mlflowPair) int { return strings.Compare(a.Key, b.Key) })
	return out
}

func (s MLflowServer) sendJob(ctx context.Context, experiment string, r *disdel.Record) error {
	run, known, err := s.run(ctx, experiment, r)
	if err != nil {
		return err
	}
	log := func(field string, part any) error {
		return s.call(ctx, http.MethodPost, "runs/log-batch", map[string]any{"run_id": run, field: part}, nil)
	}
	for part := range slices.Chunk(mlflowMetrics(r), mostMetrics) {
		err = errors.Join(err, log("metrics", part))
	}
	missing := slices.DeleteFunc(pairs(mlflowParameters(r)), func(p mlflowPair) bool { // parameters cannot change
		return slices.ContainsFunc(known, func(k mlflowPair) bool { return k.Key == p.Key })
	})
	for part := range slices.Chunk(missing, mostParameters) {
		err = errors.Join(err, log("params", part))
	}
	for part := range slices.Chunk(pairs(mlflowTags(r)), mostParameters) {
		err = errors.Join(err, log("tags", part))
	}
	if err != nil {
		return err
	}
	end := map[string]any{"run_id": run, "status": mlflowStatusNames[mlflowStatus(r.Status)], "run_name": runName(r)}
	if !r.Ended.IsZero() {
		end["end_time"] = r.Ended.UnixMilli()
	}
	return s.call(ctx, http.MethodPost, "runs/update", end, nil)
}

// mlflowStatusNames are the names of states in the REST API.
var mlflowStatusNames = map[int]string{
	mlflowRunning: "RUNNING", mlflowFinished: "FINISHED", mlflowFailed: "FAILED", mlflowKilled: "KILLED",
}

// run is the id of the run of a job, and the parameters that the run has. It is created if the job was never sent.
func (s MLflowServer) run(ctx context.Context, experiment string, r *disdel.Record) (id string, known []mlflowPair,
	err error,
) {
	type info struct {
		Info struct {
			ID string `json:"run_id"`
		} `json:"info"`
		Data struct {
			Parameters []mlflowPair `json:"params"`
		} `json:"data"`
	}
	var found struct {
		Runs []info `json:"runs"`
	}
	err = s.call(ctx, http.MethodPost, "runs/search", map[string]any{
		"experiment_ids": []string{experiment}, "max_results": 1,
		"filter": fmt.Sprintf("tags.`%s` = '%s'", jobTag, r.ID),
	}, &found)
	if err != nil || len(found.Runs) > 0 {
		for _, run := range found.Runs {
			id, known = run.Info.ID, run.Data.Parameters
		}
		return id, known, err
	}
	var made struct {
		Run info `json:"run"`
	}
	err = s.call(ctx, http.MethodPost, "runs/create", map[string]any{
		"experiment_id": experiment, "start_time": r.Created.UnixMilli(), "run_name": runName(r), "user_id": r.Tenant,
		"tags": []mlflowPair{{jobTag, string(r.ID)}},
	}, &made)
	return made.Run.Info.ID, nil, err
}

// call makes one request of the REST API.
func (s MLflowServer) call(ctx context.Context, method, path string, body, into any) error {
	ctx, stop := context.WithTimeout(ctx, mlflowTimeout)
	defer stop()
	var text []byte
	var err error
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	address := strings.TrimRight(s.URL, "/") + "/api/2.0/mlflow/" + path
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if s.Token != "" {
		req.Header.Set("Authorization", "Bearer "+s.Token)
	} else if s.User != "" {
		req.SetBasicAuth(s.User, s.Password)
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		var wrong *url.Error
		if errors.As(err, &wrong) {
			err = wrong.Err // without the address, which may have a password
		}
		return s.failed(disdel.Unavailable, "it does not answer: "+err.Error(),
			"start it with: mlflow server --host 127.0.0.1 --port 5000")
	}
	defer reply.Body.Close()
	data, err := io.ReadAll(io.LimitReader(reply.Body, 1<<20))
	if err != nil {
		return s.failed(disdel.Unavailable, err.Error(), "")
	}
	if reply.StatusCode != http.StatusOK {
		return s.refused(reply.StatusCode, data)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return s.failed(disdel.Invalid, "its answer is not that of MLflow", "name the address of an mlflow server")
	}
	return nil
}

func (s MLflowServer) failed(kind disdel.Kind, why, hint string) error {
	return &disdel.Error{
		Kind: kind, Op: "export jobs", Msg: "MLflow at " + disdel.Redacted(s.URL) + ": " + why, Hint: hint,
	}
}

// refused is the error for an answer that is not 200.
func (s MLflowServer) refused(status int, data []byte) error {
	var reply struct {
		Code    string `json:"error_code"`
		Message string `json:"message"`
	}
	json.Unmarshal(data, &reply) //nolint:errcheck // without it there is a status
	why := fmt.Sprintf("HTTP %d %s %s", status, reply.Code, reply.Message)
	switch {
	case reply.Code == "RESOURCE_DOES_NOT_EXIST":
		return s.failed(disdel.NotFound, why, "")
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return s.failed(disdel.Denied, why,
			"set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN")
	case status >= http.StatusInternalServerError:
		return s.failed(disdel.Unavailable, why, "read the log of the mlflow server")
	default:
		return s.failed(disdel.Invalid, why, "check that this is the address of an mlflow server")
	}
}
