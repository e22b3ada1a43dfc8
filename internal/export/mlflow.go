package export

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// experiment is the number of the one experiment in the folder; 0 is MLflow's own default one.
const experiment = "1"

// The states of runs, by MLflow's numbers.
const (
	mlflowRunning  = 1
	mlflowFinished = 3
	mlflowFailed   = 4
	mlflowKilled   = 5
)

// mlflow writes jobs as runs of one experiment, as MLflow's file store keeps them: mlflow ui --backend-store-uri
// FOLDER.
func mlflow(folder string, list []disdel.Record) error {
	root, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	first := time.Now()
	for i := range list {
		if r := &list[i]; r.Created.Before(first) {
			first = r.Created
		}
	}
	top := filepath.Join(root, experiment)
	err = meta(top, []field{
		{"artifact_location", fileURL(top)},
		{"creation_time", first.UnixMilli()},
		{"experiment_id", experiment},
		{"last_update_time", time.Now().UnixMilli()},
		{"lifecycle_stage", "active"},
		{"name", "disdel"},
	})
	for i := range list {
		if err == nil {
			err = mlflowRun(top, &list[i])
		}
	}
	return err
}

func mlflowRun(top string, r *disdel.Record) error {
	sum := sha256.Sum256([]byte(r.ID))
	id := hex.EncodeToString(sum[:16]) // a run's id is 32 digits
	dir := filepath.Join(top, id)
	fields := []field{
		{"artifact_uri", fileURL(filepath.Join(dir, "artifacts"))},
		{"entry_point_name", ""},
		{"experiment_id", experiment},
		{"lifecycle_stage", "active"},
		{"run_id", id},
		{"run_name", runName(r)},
		{"run_uuid", id},
		{"source_name", ""},
		{"source_type", 4},
		{"source_version", ""},
		{"start_time", r.Created.UnixMilli()},
		{"status", mlflowStatus(r.Status)},
		{"tags", []string{}},
		{"user_id", r.Tenant},
	}
	if r.Ended.IsZero() {
		fields = append(fields, field{"end_time", nil})
	} else {
		fields = append(fields, field{"end_time", r.Ended.UnixMilli()})
	}
	if err := meta(dir, fields); err != nil {
		return err
	}
	files := map[string]string{}
	for _, part := range []struct {
		folder string
		texts  map[string]string
	}{{"tags/", mlflowTags(r)}, {"params/", mlflowParameters(r)}} {
		for name, text := range part.texts {
			files[part.folder+name] = text
		}
	}
	for _, m := range mlflowMetrics(r) {
		files["metrics/"+m.Key] += fmt.Sprintf("%d %s %d\n", m.Timestamp, m.Value, m.Step)
	}
	for _, sub := range []string{"artifacts", "metrics", "params", "tags"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o777); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

func mlflowTags(r *disdel.Record) map[string]string {
	tags := map[string]string{
		"mlflow.runName": runName(r), jobTag: string(r.ID), "disdel.status": r.Status.String(),
	}
	for key, value := range r.Job.Metadata.Labels {
		tags[safe(key)] = value
	}
	return tags
}

// jobTag is the tag of a run with the id of its job.
const jobTag = "disdel.job"

// mlflowMetric is a figure at a step, as MLflow's REST API has it.
type mlflowMetric struct {
	Key       string      `json:"key"`
	Value     mlflowValue `json:"value"`
	Timestamp int64       `json:"timestamp"` // ms
	Step      int         `json:"step"`
}

// mlflowValue is a number as text, which may be NaN or infinite.
type mlflowValue string

// MarshalJSON writes a number, or the text of one that is not finite.
func (v mlflowValue) MarshalJSON() ([]byte, error) {
	if json.Valid([]byte(v)) {
		return []byte(v), nil
	}
	return json.Marshal(strings.Replace(strings.TrimPrefix(string(v), "+"), "Inf", "Infinity", 1))
}

// mlflowMetrics are the figures of each round, and the cost.
func mlflowMetrics(r *disdel.Record) (out []mlflowMetric) {
	for _, s := range scalars {
		at := r.Created
		for i := range r.Rounds {
			at = at.Add(time.Duration(r.Rounds[i].Duration))
			if v := s.value(&r.Rounds[i]); v != nil {
				out = append(out, mlflowMetric{s.name, mlflowValue(numberText(v)), at.UnixMilli(), r.Rounds[i].Round + 1})
			}
		}
	}
	if r.CostGBs > 0 {
		out = append(out, mlflowMetric{"cost_gbs", mlflowValue(numberText(&r.CostGBs)), r.Created.UnixMilli(), 0})
	}
	return out
}

// mostParameter is how long a parameter may be: MLflow refuses longer ones.
const mostParameter = 500

// mlflowParameters are the job's fields, by their paths.
func mlflowParameters(r *disdel.Record) map[string]string {
	out := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if fields, ok := v.(map[string]any); ok {
			for name, value := range fields {
				walk(strings.TrimPrefix(path+"."+name, "."), value)
			}
			return
		}
		text, _ := json.Marshal(v) //nolint:errcheck // it was read as JSON
		value := strings.Trim(string(text), `"`)
		if len(value) <= mostParameter && v != nil {
			out[safe(path)] = value
		}
	}
	walk("", r.Job.Tree())
	return out
}

// safe is a text as a name of MLflow's, which is a file's: letters, digits, and a few signs.
func safe(name string) string {
	out := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' {
			return c
		}
		return '_'
	}, name)
	if out == "" || out[0] == '.' { // MLflow refuses those that might lead out of a folder
		return "_" + out
	}
	return out
}

func mlflowStatus(s disdel.Status) int {
	switch {
	case s == disdel.StatusSucceeded:
		return mlflowFinished
	case s == disdel.StatusCanceled:
		return mlflowKilled
	case s.Unfinished():
		return mlflowRunning
	default:
		return mlflowFailed
	}
}

// field is a line of a meta.yaml. Its value is written as JSON, which YAML is a superset of.
type field struct {
	name  string
	value any
}

func meta(dir string, fields []field) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var out strings.Builder
	for _, f := range fields {
		text, err := json.Marshal(f.value)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s: %s\n", f.name, text)
	}
	return os.WriteFile(filepath.Join(dir, "meta.yaml"), []byte(out.String()), 0o666)
}

func fileURL(path string) string { return "file://" + filepath.ToSlash(path) }
