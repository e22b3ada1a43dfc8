package web

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// oddNames are names that are long, without spaces, from right to left, of wide or joined signs, and empty.
var oddNames = []string{
	"", "a", strings.Repeat("x", 400), strings.Repeat("a long name ", 40), "תמונות של חתולים", "صور القطط \u202e gnp",
	"写真の分類", "👩‍👩‍👧‍👦", "e\u0301\u0301\u0301",
}

// oddJob draws a job of any status with an odd name, clocks that differ, and a record that lacks what others have.
func oddJob(r *rand.Rand, number int) *disdel.Record {
	out := job("ann", oddNames[r.IntN(len(oddNames))], number)
	statuses := []disdel.Status{
		disdel.StatusQueued, disdel.StatusRunning, disdel.StatusPaused, disdel.StatusCanceled, disdel.StatusFailed,
		disdel.StatusSucceeded,
	}
	out.Status = statuses[r.IntN(len(statuses))]
	yes := func() bool { return r.IntN(3) == 0 }
	if yes() { // the clock of the controller is ahead
		out.Created = time.Now().Add(time.Duration(r.IntN(100)) * time.Hour)
	}
	if yes() { // the clock of a platform is behind
		out.Activations[0].Start = out.Created.Add(-time.Hour)
	}
	if yes() || out.Status.Unfinished() {
		out.Ended = time.Time{}
	}
	if yes() {
		out.Rounds = out.Rounds[:r.IntN(2)]
	}
	if yes() {
		out.Activations = nil
	}
	if yes() {
		out.Plan = disdel.Plan{}
	}
	if yes() {
		out.Job.Metadata.Labels = map[string]string{oddNames[1+r.IntN(len(oddNames)-1)]: oddNames[r.IntN(len(oddNames))]}
	}
	return out
}

// Every section of drawn odd jobs is shown, and the list and home with them: no time or part is negative, and no number
// is missing.
func TestOddJobsAreShown(t *testing.T) {
	h := newHouse(t)
	b := h.signedIn("ann submit")
	const seed = 38
	r := rand.New(rand.NewPCG(seed, 0))
	wrong := regexp.MustCompile(`NaN|Inf\b|%!|<nil>|[ >(]-\d`)
	nameless := regexp.MustCompile(`<a href="/ui/jobs/[^"]*"></a>`)
	look := func(path string) {
		t.Helper()
		doc, text := b.page(path)
		if found := nameless.FindString(text); found != "" {
			t.Errorf("seed %d, %s: nobody can read the link %s", seed, path, found)
		}
		if found := wrong.FindString(words(doc)); found != "" {
			t.Errorf("seed %d, %s: it shows %q: %s", seed, path, found, words(doc))
		}
	}
	for i := range 30 {
		one := oddJob(r, i)
		if i%2 == 0 {
			one.Plan.Stages = make([]disdel.PlannedStage, 1+i%3)
		}
		h.save(one)
		for _, s := range jobSections {
			if hasSection(one, s.Key) {
				look(jobAddress(one.ID) + "?section=" + s.Key)
			}
		}
		look(fmt.Sprintf("/ui/submit?job=%s", one.ID))
	}
	look("/ui/")
	look("/ui/pool")
	look("/ui/jobs?cols=state,created,finished,time,rounds,loss,memory,cost,tag")
}
