package disdel

import "fmt"

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

// oneBeatTells is from how many batches on a single heartbeat tells how long one takes: earlier, most of its time was
// the start.
const oneBeatTells = 8

// Whole is how long an activation would have taken by the progress in its heartbeats, from the first batch that they
// tell of to the last; false where they tell none.
func (a *Activation) Whole() (Millis, bool) {
	done, all := a.Done()
	if done == 0 || all == 0 {
		return 0, false
	}
	last := a.Beats[len(a.Beats)-1]
	each := float64(last.At) / float64(done)
	early := done < oneBeatTells
	for _, b := range a.Beats { // start-up is no part of a batch's time
		if from, _ := a.ProgressAt(b); from > 0 && from < done {
			each, early = float64(last.At-b.At)/float64(done-from), false
			break
		}
	}
	if early {
		return 0, false
	}
	ran := max(0, last.At-a.WaitTime)
	return ran + Millis(each*float64(all-done)), true
}
