package disdel

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Adjustment is a limit that was changed because of a failure, or a part of the plan where no limit could be.
type Adjustment struct {
	Invocation string   `json:"invocation"`     // that failed
	Task       Task     `json:"task,omitempty"` // whose it was
	Cause      Outcome  `json:"cause"`
	Field      Field    `json:"field"`
	From       Quantity `json:"from"` // in JSON, as a job file would say it
	To         Quantity `json:"to"`
	Why        string   `json:"why"` // the arithmetic
}

// UnmarshalJSON reads an adjustment. Records of the first version name no task: it is the one of the invocation.
func (a *Adjustment) UnmarshalJSON(data []byte) error {
	type plain Adjustment
	var in plain
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if _, place, _ := strings.Cut(in.Invocation, "/"); in.Task == "" {
		for _, task := range []Task{TaskTrain, TaskAggregate, TaskEvaluate} {
			if strings.HasPrefix(place, string(task)) {
				in.Task = task
			}
		}
	}
	*a = Adjustment(in)
	return nil
}

// Field is what an adjustment changes.
type Field string

// The fields of adjustments.
const (
	FieldMemory    Field = "memory"       // of an action, in bytes
	FieldDevice    Field = "deviceMemory" // of an action's share of an accelerator, in bytes
	FieldTimeout   Field = "timeout"      // of an action, in time
	FieldBatchSize Field = "batchSize"    // a count of rows
	FieldWorkers   Field = "workers"      // a count of workers
)

// Quantity is an amount of memory, of time, or a count: one of the three. Its text is as a job file says it: "512MB",
// "1m30s", "32".
type Quantity struct {
	Memory Bytes
	Time   Millis
	Count  int
}

// String is "512MB", "1m30s" or "32".
func (q Quantity) String() string {
	switch {
	case q.Memory != 0:
		return fmt.Sprintf("%dMB", q.Memory.MB())
	case q.Time != 0:
		return q.Time.String()
	default:
		return strconv.Itoa(q.Count)
	}
}

// MarshalText writes what String prints.
func (q Quantity) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalText reads a number, a size with its unit, or a duration. It returns an Invalid error otherwise.
func (q *Quantity) UnmarshalText(text []byte) error {
	s := string(text)
	if n, err := strconv.Atoi(s); err == nil {
		*q = Quantity{Count: n}
		return nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		*q = Quantity{Time: Millis(d)}
		return nil
	}
	b, err := ParseBytes(s)
	if err != nil {
		return &Error{Kind: Invalid, Op: "parse quantity", Msg: fmt.Sprintf("%q is no number, size or duration", s)}
	}
	*q = Quantity{Memory: b}
	return nil
}
