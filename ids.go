package disdel

import "fmt"

// JobID names one submitted job: "job-" and a lower-case ULID, so that ids sort by time.
type JobID string

// jobIDLength is that of "job-" and a ULID.
const jobIDLength = 4 + 26

// Valid tells whether an id is one that a job can have. It is part of keys, paths and commands.
func (id JobID) Valid() bool {
	if len(id) != jobIDLength || id[:4] != "job-" {
		return false
	}
	for _, c := range []byte(id[4:]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// ActivationID is OpenWhisk's id of an activation: 32 lower-case hex digits.
type ActivationID string

// ActionName names an OpenWhisk action inside the caller's namespace: "package/action".
type ActionName string

// Task says what an action does; it is the `main` of the OpenWhisk action.
type Task string

// The tasks of the action image.
const (
	TaskTrain     Task = "train"
	TaskAggregate Task = "aggregate"
	TaskEvaluate  Task = "evaluate"
	TaskInfer     Task = "infer"
	TaskProbe     Task = "probe" // looks at its own container; no job has one
)

// RuntimeKind is the OpenWhisk kind of disdel's own action runtime: the embedded platform starts this binary for it.
const RuntimeKind = "disdel:1"

// UpdateID names one update on the wire. It is derived from the plan, never random, so that a second delivery of the
// same work is recognised.
type UpdateID struct {
	Job    JobID `json:"job"`
	Round  int   `json:"round"`  // 0-based
	Level  int   `json:"level"`  // 0: pushed by a worker; 1 and up: pushed by an aggregation action
	Member int   `json:"member"` // worker at level 0, cluster above
}

func (u UpdateID) String() string {
	return fmt.Sprintf("%s/round %d/level %d/%d", u.Job, u.Round, u.Level, u.Member)
}
