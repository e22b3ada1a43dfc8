package disdel

import (
	"slices"
	"time"
)

// Transition is a job that became something else.
type Transition struct {
	To    Status    `json:"to"`
	At    time.Time `json:"at"`
	Cause string    `json:"cause"`
}

// Planning is what was asked of a job's plan beside the job itself, so that another process plans it the same way.
type Planning struct {
	Estimator string   `json:"estimator,omitempty"` // method that estimates memory
	Risk      *float64 `json:"risk,omitempty"`      // accepted chance that an action is ended for memory
	Probe     bool     `json:"probe,omitempty"`
	Beside    int      `json:"beside,omitempty"` // jobs that were submitted with it, of a batch
}

// becomes lists, for each status, the statuses that may follow it. docs/reference/job-states.md says when. A job that
// has ended or is paused is resumed by being queued.
var becomes = [...][]Status{
	StatusUnknown:   {StatusQueued, StatusRunning},
	StatusQueued:    {StatusAdmitted, StatusPaused, StatusFailed, StatusCanceled},
	StatusAdmitted:  {StatusRunning, StatusQueued, StatusPaused, StatusFailed, StatusCanceled},
	StatusRunning:   {StatusSucceeded, StatusFailed, StatusCanceled, StatusPaused, StatusQueued},
	StatusPaused:    {StatusQueued, StatusCanceled},
	StatusSucceeded: {StatusQueued}, // of a job whose model was not evaluated
	StatusFailed:    {StatusQueued},
	StatusCanceled:  {StatusQueued},
}

// MayBecome tells whether a job in a state may become another.
func (s Status) MayBecome(next Status) bool {
	if int(s) >= len(becomes) {
		return false
	}
	return slices.Contains(becomes[s], next)
}

// Unfinished tells whether a job in this state is somebody's to go on with: one that is queued, admitted or running.
func (s Status) Unfinished() bool {
	return s == StatusQueued || s == StatusAdmitted || s == StatusRunning
}
