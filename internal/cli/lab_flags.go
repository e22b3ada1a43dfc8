package cli

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// LabFlags are those of disdel lab, beside the ones that say where jobs come from and what they run on.
func LabFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "policies", Value: "all", Usage: "`NAMES` of policies, with commas between: " +
				strings.Join(scheduler.PolicyNames(), ","),
		},
		&cli.IntFlag{
			Name: "max-workers", Usage: "largest `NUMBER` of workers that policies may choose",
			DefaultText: strconv.Itoa(defaultMost),
		},
		&cli.Float64Flag{
			Name: "told", Value: 1,
			Usage: "scale the time estimates that policies see for other numbers of workers by `FACTOR`",
		},
		&cli.StringFlag{
			Name: "errors", Usage: "show the regret under these `ERRORS` of the estimates: factors, and noise:DEVIATION " +
				"(.25,.5,2,4,noise:.2)",
		},
		&cli.BoolFlag{Name: "run", Usage: "also run the jobs of FILE under each policy, one after another"},
		&cli.StringFlag{Name: "plot", Usage: "plot the first job's workers over time to `FILE`.svg or FILE.png"},
	}
}

// LabQuestions is what disdel lab is asked.
type LabQuestions struct {
	Policies []string
	Most     int         // workers
	Told     float64     // factor of the times that policies are told
	Plot     string      // file of the picture; "": none
	Format   plot.Format // of it
	Errors   simulate.Errors
	Files    []string // of jobs; none: a trace is asked for
	Run      bool
}

// Bounded are jobs whose policies choose no more workers than that.
func (q LabQuestions) Bounded(jobs []sim.Job) []sim.Job {
	for i := range jobs {
		if n := &jobs[i].MaxWorkers; *n == 0 || *n > q.Most {
			*n = q.Most
		}
	}
	return jobs
}

// ReadLabQuestions reads the flags. It returns Invalid for a policy and for a kind of picture that there is not.
func ReadLabQuestions(c *cli.Context) (LabQuestions, error) {
	q := LabQuestions{
		Policies: scheduler.PolicyNames(), Most: c.Int("max-workers"), Plot: c.String("plot"), Told: c.Float64("told"),
	}
	if !c.IsSet("max-workers") {
		q.Most = defaultMost
	}
	if q.Most < 1 {
		return q, wrong("--max-workers must be at least 1", "")
	}
	if !(q.Told > 0 && q.Told <= mostTold) {
		return q, wrong("--told must be above 0 and at most 100", "")
	}
	if text := c.String("policies"); text != "all" {
		q.Policies = strings.Split(text, ",")
	}
	for _, name := range q.Policies {
		if !slices.Contains(scheduler.PolicyNames(), name) {
			return q, wrong("there is no policy \""+name+"\"", "--policies all, or some of "+
				strings.Join(scheduler.PolicyNames(), ","))
		}
	}
	if err := q.jobs(c); err != nil {
		return q, err
	}
	if q.Plot == "" {
		return q, nil
	}
	q.Format = plot.Format(strings.ToLower(strings.TrimPrefix(filepath.Ext(q.Plot), ".")))
	if q.Format != plot.SVG && q.Format != plot.PNG {
		return q, wrong("--plot: the name says no format", "write a name that ends in .svg or .png")
	}
	return q, nil
}

// jobs reads which jobs are asked about: files that end in .yaml or .yml are job files.
func (q *LabQuestions) jobs(c *cli.Context) error {
	for _, name := range c.Args().Slice() {
		if end := strings.ToLower(filepath.Ext(name)); end == ".yaml" || end == ".yml" {
			q.Files = append(q.Files, name)
		}
	}
	q.Run = c.Bool("run")
	switch {
	case q.Run && len(q.Files) == 0:
		return wrong("--run: only jobs of files can be run", "disdel lab job.yaml --run")
	case len(q.Files) > 0 && len(q.Files) < c.NArg():
		return wrong("job files and traces do not go together", "name files that end in .yaml, or one trace")
	case len(q.Files) > 0 && (c.IsSet("errors") || c.IsSet("told")):
		return wrong("--errors and --told are for traces", "disdel simulate --generate 5 --print > trace.jsonl")
	}
	return q.errors(c.String("errors"))
}

// errors reads those whose regrets are asked for.
func (q *LabQuestions) errors(text string) error {
	if text == "" {
		return nil
	}
	for piece := range strings.SplitSeq(text, ",") {
		number, noise := strings.CutPrefix(strings.TrimSpace(piece), "noise:")
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || !(v > 0 && v <= mostTold) {
			return wrong("--errors: \""+piece+"\" is no factor above 0 and at most 100", "--errors .25,.5,2,4,noise:.2")
		}
		if noise {
			q.Errors.Noises = append(q.Errors.Noises, v)
		} else {
			q.Errors.Factors = append(q.Errors.Factors, v)
		}
	}
	return nil
}

const (
	defaultMost = 32 // workers that policies may choose
	mostTold    = 100
)

func wrong(msg, hint string) error { return &disdel.Error{Kind: disdel.Invalid, Msg: msg, Hint: hint} }
