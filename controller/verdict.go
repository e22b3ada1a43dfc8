package controller

import (
	"fmt"
	"math"
	"sort"

	"github.com/disdel/disdel"
)

// The constants of verdict.
const (
	luck      = 0.01 // share of guesses that reach an accuracy: if it is larger, the accuracy shows nothing
	rise      = 1.05 // growth of a loss that counts if the accuracy is clearly above guessing
	meanGuess = 1.05 // a loss above this many times that of a guess is worse than one

	fewOthers = 5  // held-out rows of other classes that show that one answer for all rows is no luck
	fewRows   = 20 // held-out rows of one label that show that there was nothing to learn
)

// verdict says whether a successful job has learned anything, and returns warnings about its result. nil: that is
// unknown, for example with few held-out rows and one round.
func verdict(r *disdel.Record) (learned *bool, warnings []string) {
	if e := r.Unevaluated; e != nil {
		warnings = append(warnings,
			fmt.Sprintf("not evaluated: %s; disdel resume %s repeats the evaluation alone", e.Msg, r.ID))
	}
	if missed := missedGoal(r); missed != "" {
		warnings = append(warnings, missed)
	}
	against := against(r)
	switch {
	case against.chance != "":
		return new(false), append(warnings, sentence("did not learn: ", against.chance, against.loss))
	case against.loss != "" && !against.accurate:
		return new(false), append(warnings, sentence("did not learn: ", against.loss, ""))
	case against.worse && against.rose:
		return new(false), append(warnings, sentence("diverged while it trained: ", against.loss, ""))
	case against.worse:
		return new(false), append(warnings, sentence("did not learn: ", against.loss, ""))
	case against.loss != "":
		return new(true), append(warnings, against.loss)
	case against.accurate || against.fell:
		return new(true), warnings
	default:
		return nil, warnings
	}
}

func sentence(what, first, second string) string {
	if second == "" {
		return what + first
	}
	return what + first + "; " + second
}

// missedGoal says that a job with a goal has trained all its epochs without reaching it, "" for any other.
func missedGoal(r *disdel.Record) string {
	g := r.Job.Training.Goal
	if g == nil {
		return ""
	}
	row, best, at := 0, math.Inf(1), 0
	enough := g.Enough()
	for _, round := range r.Rounds {
		gap, ok := g.GapOf(round.Figures())
		if !ok {
			continue
		}
		if row++; !(gap <= enough) {
			row = 0
		}
		if gap < best {
			best, at = gap, round.Round
		}
	}
	switch {
	case row >= disdel.GoalHeld:
		return ""
	case math.IsInf(best, 1):
		return fmt.Sprintf("the goal %v was not reached: no round was evaluated", g)
	case best <= enough:
		return fmt.Sprintf("the goal %v did not hold for %d evaluations in a row; the best was %s in round %d", g,
			disdel.GoalHeld, g.Text(best), at+1)
	default:
		return fmt.Sprintf("the goal %v was not reached: the best evaluation was %s in round %d", g, g.Text(best), at+1)
	}
}

// evidence is what the rounds say about a job.
type evidence struct {
	chance   string // guessing reaches the accuracy
	accurate bool   // the accuracy is clearly above guessing
	loss     string // the train loss rose, did not fall, or the last loss is above a guess's
	worse    bool   // the last loss is above a guess's: the train loss, and the held-out loss where there is one
	rose     bool
	fell     bool
}

func against(r *disdel.Record) (e evidence) {
	rounds := r.ModelRounds()
	if len(rounds) == 0 {
		return e
	}
	last := rounds[len(rounds)-1]
	if r2 := last.R2; r2 != nil && r.Plan.HeldOut >= fewRows {
		if e.accurate = *r2 > 0; !e.accurate {
			e.chance = fmt.Sprintf("R2 is %.4f, and guessing the mean for all held-out rows has 0", *r2)
		}
	}
	if perplexity := last.Perplexity; perplexity > 0 {
		if e.accurate = perplexity < float64(r.Data.Classes); !e.accurate {
			e.chance = fmt.Sprintf("the perplexity is %.4g, and a guess among all tokens has %d", perplexity, r.Data.Classes)
		}
	} else if classes, rows := r.Data.Classes, r.Plan.HeldOut; last.Accuracy != nil && r.Data.Sparse == nil &&
		!r.Data.MultiLabel() && canTell(rows, classes) {
		right := int(math.Round(*last.Accuracy * float64(rows)))
		if e.accurate = tail(rows, right, classes) <= luck; !e.accurate {
			e.chance = fmt.Sprintf("accuracy %.4f is within what guessing gets of %d classes (up to %.4f of %d rows in 99 of "+
				"100 cases)",
				*last.Accuracy, classes, mostByLuck(rows, classes), rows)
		}
	}
	if one := oneAnswer(r.ByClass); one != "" && r.Data.Sparse == nil && last.Accuracy != nil {
		e.accurate, e.chance = false, one
	}
	guess := math.Inf(1)
	switch d := r.Data.Sparse; {
	case d != nil:
		guess = d.Guess(r.Job.Training.Loss)
		e.sparse(last, guess)
	case r.Data.MultiLabel():
		guess = math.Ln2 // of a probability of one half
	case len(r.Data.Targets) > 0 && r.Job.Training.Loss == disdel.LossMSE:
		guess = 1 // of standardised targets
	case r.Job.Training.Loss == "crossEntropy" && r.Data.Classes > 1:
		guess = math.Log(float64(r.Data.Classes))
	}
	e.course(rounds, guess)
	return e
}

// course says how the losses went, and compares the last with that of one guess for all rows.
func (e *evidence) course(rounds []disdel.Round, guess float64) {
	last := rounds[len(rounds)-1]
	train, heldOut := last.TrainLoss > meanGuess*guess, last.Loss != nil && *last.Loss > meanGuess*guess
	e.worse = train && (heldOut || last.Loss == nil)
	first, where, several := firstLoss(rounds)
	switch {
	case several && last.TrainLoss > first && (!e.accurate || last.TrainLoss > rise*first):
		e.rose = true
		e.loss = fmt.Sprintf("the train loss rose from %.4g in %s to %.4g", first, where, last.TrainLoss)
	case several && last.TrainLoss == first && !e.accurate:
		e.loss = fmt.Sprintf("the train loss did not fall: it is %.4g as in %s", first, where)
	case e.worse || train && !e.accurate:
		e.loss = fmt.Sprintf("the train loss is %.4g, and that of a guess %.4g", last.TrainLoss, guess)
	case heldOut && e.chance == "":
		e.loss = fmt.Sprintf("the held-out loss is %.4g, and that of a guess %.4g", *last.Loss, guess)
	case several && last.TrainLoss < first:
		e.fell = true
	}
}

// oneAnswer says that a network gives one answer for all held-out rows, which shows nothing however many of them it
// is right for. It is empty if the network gives several, or if there are too few rows to tell.
func oneAnswer(b *disdel.ByClass) string {
	predicted, only := b.OnlyGiven()
	class, rows, all := b.MostLabels()
	switch {
	case !only:
		return ""
	case rows == all && predicted == class && all >= fewRows:
		return fmt.Sprintf("all %d held-out rows have the class %s, so that their accuracy shows nothing", all,
			b.Title(class))
	case all-b.Rows[predicted] >= fewOthers:
		return fmt.Sprintf("the network answers with class %s for all %d held-out rows, and %d of them have it",
			b.Title(predicted), all, b.Rows[predicted])
	default:
		return ""
	}
}

// sparse considers the held-out loss of a model of sparse rows. Its targets may be mostly of one class, which
// guessing gets right; but a loss below that of the constant guess is no luck.
func (e *evidence) sparse(last disdel.Round, guess float64) {
	switch {
	case last.Loss == nil:
	case *last.Loss < guess:
		e.accurate = true
	default:
		e.chance = fmt.Sprintf("the held-out loss %.4g is no better than the %.4g of one guess for all rows",
			*last.Loss, guess)
	}
}

// firstLoss is the earliest loss to compare with the last.
func firstLoss(rounds []disdel.Round) (loss float64, where string, several bool) {
	first := rounds[0]
	if first.FirstLoss != nil {
		return *first.FirstLoss, fmt.Sprintf("the first epoch of round %d", first.Round+1), true
	}
	return first.TrainLoss, fmt.Sprintf("round %d", first.Round+1), len(rounds) > 1
}

// canTell tells whether so many rows can distinguish learning from guessing at all.
func canTell(rows, classes int) bool {
	return rows > 0 && classes > 1 && math.Pow(1/float64(classes), float64(rows)) <= luck
}

// tail is the share of guesses that get at least right rows right, by the binomial distribution.
func tail(rows, right, classes int) float64 {
	n, p := float64(rows), 1/float64(classes)
	if float64(right) <= n*p {
		return 1
	}
	k := float64(right)
	term := math.Exp(lgamma(n+1) - lgamma(k+1) - lgamma(n-k+1) + k*math.Log(p) + (n-k)*math.Log1p(-p))
	sum := 0.0
	for ; k <= n && term > 1e-12*luck; k++ {
		sum += term
		term *= (n - k) / (k + 1) * p / (1 - p)
	}
	return sum
}

func lgamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}

// mostByLuck is the largest accuracy that is no better than luck.
func mostByLuck(rows, classes int) float64 {
	first := sort.Search(rows, func(right int) bool { return tail(rows, right, classes) <= luck })
	return float64(first-1) / float64(rows)
}
