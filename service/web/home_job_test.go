package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/queue"
	"golang.org/x/net/html"
)

// Every section of a job has an address of its own, and shows what its name says.
func TestAJobsPage(t *testing.T) {
	h := newHouse(t)
	good, bad := job("ann", "small", 1), hostileJob("ann", 2)
	good.Model = &disdel.ModelRef{Name: "small", Version: 4}
	h.save(good, bad)
	b := h.signedIn("ann read")
	address := "/ui/jobs/" + string(good.ID)
	for section, want := range map[string][]string{
		"":         {"peak memory", "Loss by round", "Accuracy by round"},
		"curves":   {"Loss by round", "Train loss"},
		"memory":   {"Memory of every action", "came nearest to its limit: 180 MB of 256 MB", "Memory of the train actions"},
		"timeline": {"Activations over time", "Attempt"},
		"logs":     {"train 0", "begins", "180 MB"},
		"report":   {"digits-cnn on digits"},
		"files":    {"job.yaml", "disdel model export small:v4 --to onnx", "batchSize: 64"},
	} {
		doc, _ := b.page(address + "?section=" + section)
		text, here := words(doc), 0
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%q: no %q in %s", section, w, text)
			}
		}
		each(doc, func(n *html.Node) {
			if attribute(n, "aria-current") == "page" && strings.HasPrefix(attribute(n, "href"), address) {
				here++
				if got := strings.TrimPrefix(attribute(n, "href"), address); got != "" && got != "?section="+section {
					t.Errorf("%q: the page says that it is %s", section, got)
				}
			}
		})
		if here != 1 {
			t.Errorf("%q: %d links are marked as the shown section", section, here)
		}
	}
	doc, _ := b.page("/ui/jobs/" + string(bad.ID))
	if text := words(doc); !strings.Contains(text, "Cause") || !strings.Contains(text, "<script>alert(1)</script>") {
		t.Errorf("%s", text)
	}
}

// Only a job whose network trains in stages has the section of stages.
func TestTheSectionOfStages(t *testing.T) {
	h := newHouse(t)
	whole, staged := job("ann", "whole", 1), job("ann", "staged", 2)
	staged.Plan.Stages = []disdel.PlannedStage{{First: "conv1", Last: "pool1"}, {First: "fc", Last: "softmax"}}
	h.save(whole, staged)
	b := h.signedIn("ann read")
	_, text := b.page(jobAddress(staged.ID) + "?section=stages")
	for _, want := range []string{"Memory of every stage", "conv1 to pool1", `?section=stages" aria-current="page"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if _, text := b.page(jobAddress(whole.ID)); strings.Contains(text, "section=stages") {
		t.Error("a job without stages has a link to them")
	}
	if res, _ := b.send("GET", jobAddress(whole.ID)+"?section=stages", nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("stages of a job without them: %d", res.StatusCode)
	}
}

// The form of the curves chooses how they are drawn, and shows what is chosen. Unknown choices change nothing.
func TestTheFormOfTheCurves(t *testing.T) {
	h := newHouse(t)
	r := job("ann", "small", 1)
	h.save(r)
	b := h.signedIn("ann read")
	address := "/ui/jobs/" + string(r.ID) + "?section=curves"
	_, text := b.page(address + "&scale=log&smooth=0.8&axis=time")
	for _, want := range []string{
		`value="log" selected`, `selected>0.8<`, `value="time" selected`, "seconds of all rounds", "weight 0.8",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	_, plain := b.page(address)
	if _, odd := b.page(address + "&scale=x&smooth=9&axis=x"); odd != plain {
		t.Error("unknown choices change the page")
	}
}

// Every section of a job with 60 rounds of 4 workers weighs at most 250 KB, with the style and the script.
func TestTheWeightOfAJobsPage(t *testing.T) {
	h := newHouse(t)
	r := job("ann", "long", 1)
	round, activation := r.Rounds[2], r.Activations[2]
	r.Rounds, r.Activations, r.Plan.Rounds, r.Plan.Workers = nil, nil, 60, 4
	r.Plan.Stages = []disdel.PlannedStage{{First: "conv1", Last: "pool1"}, {First: "fc", Last: "softmax"}}
	for i := range 60 {
		round.Round = i
		r.Rounds = append(r.Rounds, round)
		for w := range 4 {
			activation.Round, activation.Member = i, w
			activation.Start = r.Created.Add(time.Duration(i) * time.Second)
			activation.End = activation.Start.Add(time.Second)
			r.Activations = append(r.Activations, activation)
		}
	}
	h.save(r)
	b, most := h.signedIn("ann read"), 0
	for _, s := range jobSections {
		_, text := b.page("/ui/jobs/" + string(r.ID) + "?section=" + s.Key)
		all := len(text) + len(style()) + len(script)
		if most = max(most, all); all > 250_000 {
			t.Errorf("%s weighs %d bytes", s.Name, all)
		}
	}
	t.Logf("figure page_job_kb %.1f KB", float64(most)/1000)
}

// The files of a job are stored, and never opened as pages of this server.
func TestTheFilesOfAJob(t *testing.T) {
	h := newHouse(t)
	r := job("ann", "small", 1)
	h.save(r)
	b := h.signedIn("ann read")
	for file, want := range map[string]string{
		"job.yaml": "batchSize: 64", "record.json": `"costGBs":1.5`, "report.html": "Loss by round", "report.md": "# small",
	} {
		res, text := b.send("GET", "/ui/jobs/"+string(r.ID)+"/files/"+file, nil)
		if res.StatusCode != http.StatusOK || !strings.Contains(text, want) ||
			!strings.HasPrefix(res.Header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%s: %d %v %.300s", file, res.StatusCode, res.Header, text)
		}
	}
	file := "/ui/jobs/" + string(r.ID) + "/files/record.json"
	if res, _ := h.signedIn("bob submit").send("GET", file, nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("bob gets ann's record: %d", res.StatusCode)
	}
}

// A home without jobs shows how to start. A home with jobs shows the running jobs and their progress, the failed jobs
// and their next step, and the newest models. It does not show a failure if a newer job of the same name has ended.
func TestHome(t *testing.T) {
	h := newHouse(t)
	b := h.signedIn("ann submit")
	doc, _ := b.page("/ui/")
	if text := words(doc); !strings.Contains(text, "disdel quickstart") || !strings.Contains(text, "disdel init --csv") ||
		!strings.Contains(text, "--python") {
		t.Errorf("no way to start: %s", text)
	}
	overcome, again := job("ann", "twice", 1), job("ann", "twice", 2)
	overcome.Status, overcome.Failure = disdel.StatusFailed, &disdel.Error{Kind: disdel.Crashed, Msg: "overcome"}
	again.Model = &disdel.ModelRef{Name: "twice", Version: 7}
	wrong, blind, live := job("ann", "wrong", 3), job("ann", "blind", 4), job("ann", "live", 5)
	wrong.Status, wrong.Failure = disdel.StatusFailed, &disdel.Error{
		Kind: disdel.Crashed, Msg: "it broke",
		Invocation: wrong.Activations[2].Invocation.ID,
	}
	last := &wrong.Activations[2]
	last.Outcome, last.Peak = disdel.OutcomeOutOfMemory, 256*disdel.MB
	no := false
	blind.Learned = &no
	live.Status, live.Ended, live.Plan.Rounds, live.Created = disdel.StatusRunning, time.Time{}, 10, time.Now()
	live.Job.Resources.MaxCost = 20
	live.Plan.Actions = []disdel.ActionPlan{{Task: disdel.TaskTrain, Limits: disdel.Limits{Memory: 256 * disdel.MB}}}
	h.save(overcome, again, wrong, blind, live)
	doc, _ = b.page("/ui/")
	text := words(doc)
	for _, want := range []string{
		"live digits-cnn on digits, 2 workers round 3 of 10", " left (", "accuracy 0.9000 · memory 180 MB of 256 MB",
		"of 20.00 GB-s", "ran out of memory at its limit of 256 MB", "Next step: disdel report", "did not learn", "twice:v7",
		"No job waits.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if strings.Contains(text, "overcome") {
		t.Error("a failure is shown that a newer job has overcome")
	}
}

// The bar of the pool has a part for each tenant; together they fill what is held of it.
func TestThePoolsBar(t *testing.T) {
	p := queue.Pool{Capacity: scheduler.Capacity{Memory: 1000 * disdel.MB}, Waiting: []queue.PoolJob{
		{Job: "job-a", Room: scheduler.Capacity{Memory: 700 * disdel.MB}}, {Job: "job-b"}, {Job: "job-c"},
	}}
	for tenant, size := range map[string]disdel.Bytes{"ann": 100, "bob": 200, "": 300} {
		p.Holding = append(p.Holding, queue.PoolJob{Tenant: tenant, Room: scheduler.Capacity{Memory: size * disdel.MB}})
	}
	bar := poolBarOf(p)
	var got strings.Builder
	for _, part := range bar.Parts {
		got.WriteString(fmt.Sprintf("%s %.0f+%.0f ", part.Name, part.From, part.Width))
	}
	if got.String() != "this home 0+30 bob 30+20 ann 50+10 " || bar.Held != 600*disdel.MB {
		t.Errorf("%q, %v", got.String(), bar.Held)
	}
	waiting := waitingJobs(p, []row{{JobResult: report.JobResult{ID: "job-a", Name: "large"}}}, nil)
	if w := waiting[0]; w.Name != "large" ||
		w.Why != "It needs 700 MB at once; the jobs above hold 600 MB of 1000 MB. It is the first in the queue." {
		t.Errorf("%+v", w)
	}
	if w := waiting[2]; !strings.HasSuffix(w.Why, "2 jobs go first.") {
		t.Errorf("%+v", w)
	}
}
