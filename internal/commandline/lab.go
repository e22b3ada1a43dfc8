package commandline

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/scheduler"
)

// LabFlags are those of disdel lab, beside the ones that say where jobs come from and what they run on.
func LabFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "policies", Value: "all", Usage: "`NAMES` of policies, with commas between: " +
				strings.Join(scheduler.PolicyNames(), ","),
		},
		&cli.IntFlag{Name: "max-workers", Usage: "`NUMBER` of workers that policies may choose at most (default: 32)"},
		&cli.Float64Flag{
			Name: "told", Value: 1,
			Usage: "`FACTOR` by which policies are told wrong times of numbers of workers that a job did not begin with",
		},
		&cli.StringFlag{Name: "plot", Usage: "draw the first job's workers over its time to `FILE`.svg or FILE.png"},
	}
}

// LabQuestions is what disdel lab is asked.
type LabQuestions struct {
	Policies []string
	Most     int         // workers
	Told     float64     // factor of the times that policies are told
	Plot     string      // file of the picture; "": none
	Format   plot.Format // of it
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
	if q.Plot == "" {
		return q, nil
	}
	q.Format = plot.Format(strings.ToLower(strings.TrimPrefix(filepath.Ext(q.Plot), ".")))
	if q.Format != plot.SVG && q.Format != plot.PNG {
		return q, wrong("--plot: the name says no format", "write a name that ends in .svg or .png")
	}
	return q, nil
}

const (
	defaultMost = 32 // workers that policies may choose
	mostTold    = 100
)

func wrong(msg, hint string) error { return &disdel.Error{Kind: disdel.Invalid, Msg: msg, Hint: hint} }
