package disdel

import (
	"fmt"
	"time"
)

// Span is a part of a job's training: the epochs and batches that a round is, for one worker.
type Span struct {
	Epochs  int `json:"epochs"`            // to train, the first and the last maybe in part
	Epoch   int `json:"epoch"`             // trained before
	Batch   int `json:"batch,omitempty"`   // trained before, of the first epoch
	Batches int `json:"batches,omitempty"` // to train, of the one epoch that they are in; 0: to the epochs' end
}

// Done is how many batches of its work an activation had done by its last heartbeat, and how many there were.
func (a *Activation) Done() (done, all int) {
	if len(a.Beats) == 0 {
		return 0, 0
	}
	return a.ProgressAt(a.Beats[len(a.Beats)-1])
}

// DoneText says how far an activation came: "20 of 50 batches were trained".
func (a *Activation) DoneText() string {
	done, all := a.Done()
	verb := "trained"
	if a.Task == TaskEvaluate {
		verb = "evaluated"
	}
	return fmt.Sprintf("%d of %d batches were %s", done, all, verb)
}

// ProgressAt is how many batches of its work an action had done at a heartbeat. Heartbeats count from the start of the
// epoch; where it is not known which part of it a train action's round is, the round is the epoch.
func (a *Activation) ProgressAt(b Beat) (done, all int) {
	s := a.Span
	switch {
	case s == nil || s.Epochs == 0:
		return b.Batch, b.Batches
	case s.Batches > 0:
		return min(max(0, b.Batch-s.Batch), s.Batches), s.Batches
	}
	all = max(0, s.Epochs*b.Batches-s.Batch)
	done = max(0, b.Epoch-s.Epoch-1)*b.Batches + b.Batch - s.Batch
	return min(max(0, done), all), all
}

// What tells a stall from slow work: heartbeats come several times a second, and later only where a batch takes longer.
const (
	leastSilence   = Millis(1500 * time.Millisecond)
	silenceInBeats = 3 // longest times between two heartbeats
)

// Stall is where an activation stopped answering long before its timeout ended it.
type Stall struct {
	At        Millis // time of the last heartbeat, since the activation's start
	Silence   Millis // from then to its end
	Done, All int    // batches at the last heartbeat; 0: its heartbeats tell none
}

// Text says where the heartbeats stopped: "its heartbeats stopped after 0.2 s, at 10 % of its work".
func (s Stall) Text() string {
	text := fmt.Sprintf("its heartbeats stopped after %.1f s", s.At.Seconds())
	if s.All > 0 {
		text += fmt.Sprintf(", at %d %% of its work", 100*s.Done/s.All)
	}
	return text
}

// Stalled tells whether an activation that ran into its timeout had stopped answering long before. Its heartbeats ended
// although work was left, and their pace says that the timeout was long enough for all of it. Such an activation was
// frozen or cut off; it is no sign that the work needs more time.
func (a *Activation) Stalled() (Stall, bool) {
	n := len(a.Beats)
	if a.Outcome != OutcomeTimeout || n == 0 {
		return Stall{}, false
	}
	last, ran := a.Beats[n-1], a.Duration
	if ran <= 0 {
		ran = a.Limits.Timeout
	}
	s := Stall{At: max(0, last.At-a.WaitTime)}
	s.Silence = ran - s.At
	s.Done, s.All = a.ProgressAt(last)
	if a.Task != TaskAggregate && (s.Done == 0 || s.Done >= s.All) { // what comes before and after batches has no beats
		return s, false
	}
	if s.Silence < max(leastSilence, silenceInBeats*a.beatGap()) {
		return s, false
	}
	pace, told := a.Pace()
	return s, !told || pace.Ends <= a.Limits.Timeout
}

// beatGap is the longest time between two heartbeats, and between two batches.
func (a *Activation) beatGap() Millis {
	var gap Millis
	for i := 1; i < len(a.Beats); i++ {
		gap = max(gap, a.Beats[i].At-a.Beats[i-1].At)
	}
	last := a.Beats[len(a.Beats)-1]
	if done, _ := a.ProgressAt(last); done > 0 {
		gap = max(gap, (last.At-a.WaitTime)/Millis(done))
	}
	return gap
}
