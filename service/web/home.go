package web

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/service/queue"
	"github.com/disdel/disdel/service/tenant"
)

// How many jobs of each kind the first page shows.
const (
	homeRunning = 20
	homeTrouble = 3
	homeEnded   = 6
)

// home is the first page: what runs, what waits and why, what went wrong, and the newest results.
type home struct {
	Running []jobHead
	Waiting []waitingJob
	Trouble []trouble
	Ended   []row
	Models  []row
	Pool    poolBar
	Server  string // the address for the flag --server; "": commands need none
	Key     string // of the button that runs the quickstart; "": the user may not start jobs
}

// waitingJob is a job in the queue with what it waits for.
type waitingJob struct {
	queue.PoolJob
	Name, Why string
}

// trouble is a job that failed or did not learn, with the next step.
type trouble struct {
	jobHead
	Cause, Why, Command string
	Again               string // address of the form with the advised changes; "": there are none
}

func homePage(v *visit) error {
	list, err := listRows(v.Context(), v.s, v.site.rows, history.Query{Limit: usualJobs})
	if err != nil {
		return err
	}
	p, err := v.s.Pool(v.Context())
	if err != nil {
		return err
	}
	page := home{Pool: poolBarOf(p)}
	if v.role.Allows(tenant.RoleSubmit) {
		page.Key = rand.Text()
	}
	if options := v.place(); len(options) > 0 {
		page.Server = options[0].Value
	}
	for _, r := range list {
		if err := page.add(v, r); err != nil {
			return err
		}
	}
	page.Waiting = waitingJobs(p, list, page.Running)
	v.write(http.StatusOK, "home", view{Title: "Home", Here: "Home", Live: Root + "live/jobs", Body: &page})
	return nil
}

// add adds a job to the parts of the page that show it. Jobs come newest first.
func (h *home) add(v *visit, r row) error {
	running := r.Status == disdel.StatusRunning && len(h.Running) < homeRunning
	wrong := (r.Status == disdel.StatusFailed || r.Verdict != "") && len(h.Trouble) < homeTrouble && !h.repeated(r)
	if running || wrong {
		rec, err := v.s.Look(v.Context(), string(r.ID))
		switch {
		case disdel.KindOf(err) == disdel.NotFound: // it was deleted meanwhile
			return nil
		case err != nil:
			return err
		case running:
			h.Running = append(h.Running, headOf(&rec, time.Now()))
		default:
			h.Trouble = append(h.Trouble, troubleOf(&rec, v.place()))
		}
	}
	if !r.Status.Unfinished() && r.Status != disdel.StatusPaused && len(h.Ended) < homeEnded {
		h.Ended = append(h.Ended, r)
	}
	if r.Model != "" && len(h.Models) < homeEnded {
		h.Models = append(h.Models, r)
	}
	return nil
}

// repeated tells whether a newer job of the same name has ended: its result is what counts.
func (h *home) repeated(r row) bool {
	return slices.ContainsFunc(h.Ended, func(newer row) bool { return newer.Name == r.Name })
}

// Empty tells whether there has never been a job.
func (h *home) Empty() bool {
	return len(h.Running)+len(h.Waiting)+len(h.Ended)+len(h.Models) == 0
}

func troubleOf(rec *disdel.Record, place []disdel.Option) trouble {
	now := time.Now()
	r, out := report.New(rec, now, place...), trouble{jobHead: headOf(rec, now)}
	if len(r.Causes) > 0 {
		c := r.Causes[0]
		out.Cause, out.Why, out.Command = c.What, c.Evidence, c.Command
	}
	if r.Failure != nil {
		out.Cause, out.Why = r.Failure.Cause, r.Failure.Hint
	}
	if a := r.Advice; a != nil {
		out.Why = a.Why
		if rec.Status == disdel.StatusFailed && len(a.Sets) > 0 {
			out.Again = submitAddress(rec.ID, a.Sets...)
		}
		if len(a.Commands) > 0 {
			out.Command = strings.Join(a.Commands[0].Lines, " && ")
		}
	}
	return out
}

// waitingJobs are the jobs in the queue, with the reason that the page can see, and when the next running job ends.
func waitingJobs(p queue.Pool, list []row, running []jobHead) (out []waitingJob) {
	until := ""
	if i := soonest(running); i >= 0 {
		until = fmt.Sprintf(" %s ends next: %s.", running[i].Name, running[i].Left)
	}
	out = namedJobs(p.Waiting, list)
	for i := range out {
		one := &out[i]
		one.Why = fmt.Sprintf("It needs %v at once", one.Room.Memory)
		if known(p) {
			one.Why += fmt.Sprintf("; the jobs above hold %v of %v", held(p), p.Capacity.Memory)
		}
		switch i {
		case 0:
			one.Why += ". It is the first in the queue."
		case 1:
			one.Why += ". 1 job goes first."
		default:
			one.Why += fmt.Sprintf(". %d jobs go first.", i)
		}
		one.Why += until
	}
	return out
}

// namedJobs are jobs of a pool with their names; one that is not in the list has its id as its name.
func namedJobs(jobs []queue.PoolJob, list []row) (out []waitingJob) {
	for _, j := range jobs {
		one := waitingJob{PoolJob: j, Name: string(j.Job)}
		if k := slices.IndexFunc(list, func(r row) bool { return r.ID == j.Job }); k >= 0 {
			one.Name = list[k].Name
		}
		out = append(out, one)
	}
	return out
}

// soonest is the number of the job that is expected to end first, -1 if no forecast is known.
func soonest(running []jobHead) int {
	best := -1
	for i := range running {
		if running[i].Left != "" && (best < 0 || running[i].Ends < running[best].Ends) {
			best = i
		}
	}
	return best
}

// poolBar is the pool as one bar, a part for each tenant.
type poolBar struct {
	Held, Size disdel.Bytes
	Known      bool // how large the pool is
	Parts      []poolPart
}

// poolPart is what a tenant holds, in percent of the bar.
type poolPart struct {
	Name, Class string
	Memory      disdel.Bytes
	From, Width float64
}

func poolBarOf(p queue.Pool) poolBar {
	bar := poolBar{Held: held(p), Size: p.Capacity.Memory, Known: known(p)}
	byTenant := map[string]disdel.Bytes{}
	for _, j := range p.Holding {
		byTenant[j.Tenant] += j.Room.Memory
	}
	for name, memory := range byTenant {
		bar.Parts = append(bar.Parts, poolPart{Name: cmp.Or(name, "this home"), Memory: memory})
	}
	slices.SortFunc(bar.Parts, func(a, b poolPart) int {
		return cmp.Or(cmp.Compare(b.Memory, a.Memory), cmp.Compare(a.Name, b.Name))
	})
	total := float64(bar.Held)
	if bar.Known {
		total = max(total, float64(bar.Size))
	}
	from := 0.0
	for i := range bar.Parts {
		one := &bar.Parts[i]
		one.Class, one.From, one.Width = fmt.Sprintf("s%d", i%8), from, 100*float64(one.Memory)/max(1, total)
		from += one.Width
	}
	return bar
}
