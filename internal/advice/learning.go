package advice

import (
	"fmt"
	"math"
	"strconv"

	"github.com/disdel/disdel"
)

// Cause is a likely cause why a job learned nothing.
type Cause struct {
	What     string   // "the learning rate is too large"
	Evidence string   // the figures of the record that show it
	Sets     []string // changes to try, PATH=VALUE as --set takes them; none: Look shows more
	Look     []string // a command that shows more, without the program's name; none: try Sets
}

// The constants of NotLearned.
const (
	jump     = 1.5  // a train loss above this many times that of a guess has jumped
	flat     = 0.05 // a train loss that fell by less than this share is flat
	fell     = 0.3  // a train loss that fell by more than this share shows that the network learned its training rows
	uneven   = 0.7  // a class with this share of the rows is nearly all of them
	fewSteps = 100  // with fewer steps, most networks learn nothing
	reach    = 4    // times the size of the targets that the steps of a usual rate can go
)

// NotLearned returns the likely causes why a job learned nothing, the likeliest first. It works from the record only.
// It returns none for a job that learned, or of which that is not known.
func NotLearned(r *disdel.Record) []Cause {
	if r.Learned == nil || *r.Learned || len(r.Rounds) == 0 {
		return nil
	}
	c := course{record: r, losses: lossesOf(r), guess: guessOf(r)}
	var out []Cause
	for _, look := range []func() *Cause{
		c.sameLabels, c.largeRate, c.unevenClasses, c.smallRate, c.fewSteps, c.largeInputs, c.byHeart,
	} {
		if found := look(); found != nil {
			out = append(out, *found)
		}
	}
	if len(out) == 0 {
		out = append(out, c.unrelated())
	}
	return out
}

// course is how the training of a job went.
type course struct {
	record *disdel.Record
	losses []float64 // train losses, by epoch where they are known, else by round
	guess  float64   // loss of one guess for all rows; NaN: unknown
}

// fromZero tells whether a job predicts numbers from weights that begin with zero.
func fromZero(r *disdel.Record) bool {
	return r.Data.Sparse != nil && !r.Data.Sparse.Ratings() && r.Job.Training.Loss == disdel.LossSquared
}

// lossesOf are the train losses of a job, oldest first.
func lossesOf(r *disdel.Record) (out []float64) {
	for i := range r.Rounds {
		round := &r.Rounds[i]
		switch {
		case len(round.Trained) > 0:
			for _, e := range round.Trained {
				out = append(out, e.Loss)
			}
		case round.FirstLoss != nil:
			out = append(out, *round.FirstLoss, round.TrainLoss)
		default:
			out = append(out, round.TrainLoss)
		}
	}
	return out
}

// guessOf is the loss of one guess for all rows. It is NaN if it is unknown.
func guessOf(r *disdel.Record) float64 {
	switch d := r.Data.Sparse; {
	case d != nil:
		return d.Guess(r.Job.Training.Loss)
	case r.Data.Classes > 1 && r.Job.Training.Loss == "crossEntropy":
		return math.Log(float64(r.Data.Classes))
	default:
		return math.NaN()
	}
}

func (c *course) first() float64 { return c.losses[0] }
func (c *course) last() float64  { return c.losses[len(c.losses)-1] }

// start is the loss that training began with, as far as the record shows it.
func (c *course) start() float64 {
	switch d := c.record.Data.Sparse; {
	case math.IsNaN(c.guess):
		return c.first()
	case fromZero(c.record):
		return d.Mean*d.Mean + d.Deviation*d.Deviation
	default:
		return c.guess
	}
}

// startText names it.
func (c *course) startText() string {
	if math.IsNaN(c.guess) {
		return fmt.Sprintf("it began with %.4g", c.first())
	}
	if fromZero(c.record) {
		return fmt.Sprintf("weights of zero have %.4g", c.start())
	}
	return fmt.Sprintf("a guess has %.4g", c.guess)
}

// jumped returns the position of the largest train loss if that is far above the loss of a guess.
func (c *course) jumped() (at int, ok bool) {
	for i, l := range c.losses {
		if !(l <= c.losses[at]) {
			at = i
		}
	}
	return at, !(c.losses[at] <= jump*c.start())
}

// isFlat says whether the train loss hardly fell.
func (c *course) isFlat() bool { return !(c.last() < (1-flat)*math.Min(c.first(), c.start())) }

// rate returns the learning rate of the job, and that which is usual for its optimiser.
func (c *course) rate() (rate, usual float64, name string) {
	o := c.record.Job.Training.Optimizer
	return o.Rate(), usualRate(c.record), o.Name()
}

// usualRate is the learning rate that most jobs with an optimiser begin with. Optimisers other than sgd change a weight
// by about their rate in each step, so that they need a rate for the size of the targets if the weights begin with zero.
func usualRate(r *disdel.Record) float64 {
	switch {
	case r.Job.Training.Optimizer.SGD != nil:
		return sgdRate
	case fromZero(r):
		d := r.Data.Sparse
		rate := reach * (math.Abs(d.Mean) + d.Deviation) / float64(steps(r))
		rate, _ = strconv.ParseFloat(strconv.FormatFloat(rate, 'g', 2, 64), 64)
		return rate
	default:
		return adamRate
	}
}

// steps is the number of steps that each worker makes in a whole job, at least 1.
func steps(r *disdel.Record) int {
	batch := max(1, r.Plan.WorkerBatch(&r.Job))
	return max(1, r.Data.Train/max(1, r.Plan.Workers)/batch) * max(1, r.Job.Training.Epochs)
}

// largeRate is for a loss that jumped, and for a rate far above what is usual.
func (c *course) largeRate() *Cause {
	at, jumped := c.jumped()
	rate, usual, name := c.rate()
	if rate == 0 || !jumped && rate <= farOff*usual {
		return nil
	}
	text := fmt.Sprintf("the learning rate is %g, and %g is usual for %s", rate, usual, name)
	if jumped {
		text = fmt.Sprintf("the train loss jumped to %.4g in %s, and %s; %s", c.losses[at], c.when(at), c.startText(), text)
	}
	w := worker{record: c.record}
	return &Cause{What: "the learning rate is too large", Evidence: text, Sets: w.smallerSteps().Sets}
}

// when names the epoch or round of a loss.
func (c *course) when(at int) string {
	if len(c.losses) == len(c.record.Rounds) {
		return fmt.Sprintf("round %d", c.record.Rounds[at].Round+1)
	}
	return fmt.Sprintf("epoch %d", at+1)
}

// smallRate is for a flat loss with a rate far below what is usual.
func (c *course) smallRate() *Cause {
	rate, usual, name := c.rate()
	if _, jumped := c.jumped(); jumped || !c.isFlat() || rate == 0 || rate*farOff > usual {
		return nil
	}
	text := fmt.Sprintf("%s; the learning rate is %g, and %g is usual for %s", c.flatText(), rate, usual, name)
	if fromZero(c.record) && name != "sgd" {
		text += fmt.Sprintf(" and targets with the mean %.4g", c.record.Data.Sparse.Mean)
	}
	return &Cause{
		What: "the learning rate is too small", Evidence: text,
		Sets: []string{set("training.optimizer."+name+".learningRate", strconv.FormatFloat(usual, 'g', -1, 64))},
	}
}

// flatText says how little the train loss changed.
func (c *course) flatText() string {
	if len(c.losses) == 1 {
		return fmt.Sprintf("the train loss is %.4g, and %s", c.last(), c.startText())
	}
	return fmt.Sprintf("the train loss was %.4g at first and %.4g in the end", c.first(), c.last())
}

// fewSteps is for a flat loss after very few steps of each worker.
func (c *course) fewSteps() *Cause {
	r := c.record
	batch := r.Plan.WorkerBatch(&r.Job)
	if _, jumped := c.jumped(); jumped || !c.isFlat() || batch <= 0 {
		return nil
	}
	epochs := max(1, r.Job.Training.Epochs)
	made := steps(r)
	if made >= fewSteps {
		return nil
	}
	more := (fewSteps*epochs + made - 1) / made
	return &Cause{
		What: "the job is too short",
		Evidence: fmt.Sprintf("%s; each worker made about %d steps, %d epochs with batches of %d rows", c.flatText(), made,
			epochs, batch),
		Sets: []string{set("training.epochs", max(2*epochs, more))},
	}
}

// sameLabels is for held-out rows that all have one label.
func (c *course) sameLabels() *Cause {
	class, rows, all := c.record.ByClass.MostLabels()
	if all == 0 || rows < all {
		return nil
	}
	return &Cause{
		What:     "all labels are the same",
		Evidence: fmt.Sprintf("all %d held-out rows have the class %s", all, c.record.ByClass.Title(class)),
		Look:     []string{"dataset", "show", c.record.Data.Name},
	}
}

// unevenClasses is for a network that answers with the class of nearly all rows.
func (c *course) unevenClasses() *Cause {
	b := c.record.ByClass
	predicted, only := b.OnlyGiven()
	class, rows, all := b.MostLabels()
	share := float64(rows) / float64(max(1, all))
	if !only || predicted != class || rows == all || share < uneven {
		return nil
	}
	t := c.record.Job.Training
	return &Cause{
		What: "the classes are uneven",
		Evidence: fmt.Sprintf("the network answers with class %s for every held-out row, and %.0f %% of the rows have it",
			b.Title(class), 100*share),
		Sets: []string{set("training.epochs", 3*max(1, t.Epochs))},
		Look: []string{"dataset", "show", c.record.Data.Name},
	}
}

// largeInputs is for a loss that jumped although the learning rate is usual.
func (c *course) largeInputs() *Cause {
	at, jumped := c.jumped()
	if rate, usual, _ := c.rate(); !jumped || rate > usual {
		return nil
	}
	return &Cause{
		What: "the inputs are large numbers",
		Evidence: fmt.Sprintf("the train loss jumped to %.4g in %s although the learning rate is not above what is usual",
			c.losses[at], c.when(at)),
		Look: []string{"dataset", "show", c.record.Data.Name},
	}
}

// byHeart is for a train loss that fell while the held-out rows gained nothing.
func (c *course) byHeart() *Cause {
	if _, jumped := c.jumped(); jumped || !(c.last() < (1-fell)*math.Min(c.first(), c.start())) {
		return nil
	}
	if _, only := c.record.ByClass.OnlyGiven(); only {
		return nil
	}
	return &Cause{
		What: "the network learned the training rows by heart, or labels are wrong",
		Evidence: fmt.Sprintf("the train loss fell from %.4g to %.4g, and the held-out rows gained nothing",
			math.Min(c.first(), c.start()), c.last()),
		Look: []string{"dataset", "sample", c.record.Data.Name},
	}
}

// unrelated is what is left: nothing in the record names another cause.
func (c *course) unrelated() Cause {
	return Cause{
		What:     "the labels do not follow from the inputs, or the inputs are not scaled",
		Evidence: fmt.Sprintf("%s, and nothing else in the record is unusual", c.flatText()),
		Look:     []string{"dataset", "sample", c.record.Data.Name},
	}
}
