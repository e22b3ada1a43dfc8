package actions

import (
	"slices"
	"time"

	"github.com/disdel/disdel"
)

// stepBook records where the time of a worker's steps goes.
type stepBook struct {
	now     func() time.Time
	size    int // steps of a stretch
	mark    time.Time
	step    disdel.StepTimes // of the step that is being made
	stretch disdel.StepStretch
	lossSum float64   // of the stretch's rows
	totals  []float64 // of every step, ms
	course  disdel.StepCourse
	soFar   disdel.StepsSoFar
}

// mostStretches bounds the size of a round's course in the record: 200 bytes for each stretch.
const mostStretches = 20

// newStepBook makes a stepBook for a round of so many steps.
func newStepBook(now func() time.Time, steps int) *stepBook {
	return &stepBook{now: now, size: max(1, (steps+mostStretches-1)/mostStretches), mark: now()}
}

// begin starts the clock: the time since the last lap is not recorded.
func (b *stepBook) begin() { b.mark = b.now() }

// lap adds the time since begin, or since the last lap, to a part.
func (b *stepBook) lap(part *float64) {
	now := b.now()
	*part += float64(now.Sub(b.mark)) / float64(time.Millisecond)
	b.mark = now
}

// sent ends a step and records what it sent.
func (b *stepBook) sent(step, values, bytes int) {
	b.totals = append(b.totals, b.step.Total())
	b.soFar.Made++
	b.soFar.Own += b.step.Fetch + b.step.Compute + b.step.Select + b.step.Apply
	b.soFar.Others += b.step.Write + b.step.Wait + b.step.Read
	s := &b.stretch
	s.Steps++
	s.Values += float64(values)
	s.Bytes += float64(bytes)
	s.Add(b.step, 1)
	b.step = disdel.StepTimes{}
	s.Last = step
	if step%b.size == 0 {
		b.close()
	}
}

// trained records the rows of a step.
func (b *stepBook) trained(m disdel.Metrics) {
	b.stretch.Rows += m.Rows
	b.soFar.Rows, b.soFar.Loss = b.soFar.Rows+m.Rows, b.soFar.Loss+m.Loss*float64(m.Rows)
	b.lossSum += m.Loss * float64(m.Rows)
}

// close ends a stretch.
func (b *stepBook) close() {
	s := b.stretch
	if s.Steps == 0 {
		return
	}
	n := float64(s.Steps)
	times := disdel.StepTimes{}
	times.Add(s.StepTimes, 1/n)
	s.StepTimes, s.Values, s.Bytes = times, s.Values/n, s.Bytes/n
	s.Loss = b.lossSum / float64(max(1, s.Rows))
	s.End = b.now().UTC().Truncate(time.Millisecond)
	b.course.Stretches = append(b.course.Stretches, s)
	b.stretch, b.lossSum = disdel.StepStretch{}, 0
}

// done returns the course, nil without a step.
func (b *stepBook) done() *disdel.StepCourse {
	b.stretch.Add(b.step, 1) // waiting for the last step is part of it
	b.step = disdel.StepTimes{}
	b.close()
	if len(b.totals) == 0 {
		return nil
	}
	slices.Sort(b.totals)
	b.course.Median, b.course.High = b.totals[len(b.totals)/2], b.totals[len(b.totals)*19/20]
	return &b.course
}
