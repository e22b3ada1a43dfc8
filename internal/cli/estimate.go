package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/internal/spelling"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
)

func estimateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "estimate", Usage: "show memory, plan and limits of a job without running it", ArgsUsage: "FILE | PROGRAM.py[:ENTRY]",
		Description: "   disdel estimate job.yaml\n" +
			"   disdel estimate job.yaml --explain --set training.batchSize=256\n" +
			"   disdel estimate job.yaml --max-memory 256MB\n" +
			"   disdel estimate net.py:Net --data digits\n" +
			"   disdel estimate job.yaml --what-if workers=1..8,batch=32,64,128 --plot job.svg",
		Flags: slices.Concat([]cli.Flag{setFlag}, shorthandFlags, programFlags, []cli.Flag{actionFlag, probeFlag}, estimatorFlags,
			questionFlags),
		Action: func(c *cli.Context) error {
			q, err := readEstimateQuestions(c)
			if err != nil {
				return err
			}
			if err := checkOperands(c, 1, 1); err != nil {
				return err
			}
			src, err := readJob(c, u, c.Args().First())
			if err != nil {
				return err
			}
			return estimateJob(c, u, src, q)
		},
	}
}

// estimateJob checks a job and shows its estimate. Nothing runs.
func estimateJob(c *cli.Context, u *ui, src source, q estimateQuestions) error {
	return withClient(c, u, allParts, func(ctx context.Context, at client.Client) error {
		req := src.request(c)
		req.Preparing = render.NewFollower(u).Follow
		found, err := at.Jobs.Estimate(ctx, req, q.Questions)
		if err != nil {
			return src.showFaults(u, err)
		}
		return showEstimate(u, found, q, src.file.Name)
	})
}

var dryRunFlag = &cli.BoolFlag{Name: "dry-run", Usage: "check the job and show its estimate; run nothing"}

// dryRun shows what submit would run.
func dryRun(c *cli.Context, u *ui, src source) error {
	if err := estimateJob(c, u, src, estimateQuestions{}); err != nil {
		return err
	}
	u.Say("%s: valid; nothing was run. Without --dry-run, submit runs the job.", terminal.Clean(src.file.Name))
	return nil
}

// showEstimate prints an estimate. It returns an error if no plan of the job fits.
func showEstimate(u *ui, found *service.Estimation, q estimateQuestions, file string) error {
	how := render.EstimateSections{Plan: q.Plain(), Layers: q.Layers, File: file}
	if err := u.Show(found, func(w io.Writer) { render.PrintEstimate(w, found, how) }); err != nil {
		return err
	}
	if q.Plot != "" {
		if err := render.WriteEstimatePlot(found, q.Plot, q.Format); err != nil {
			return err
		}
		u.Say("wrote %s", terminal.Clean(q.Plot))
	}
	return found.Err()
}

// questionFlags are the flags of estimate.
var questionFlags = []cli.Flag{
	&cli.BoolFlag{
		Name:  "explain",
		Usage: "explain the memory, the limit, and what fits a smaller limit",
	},
	&cli.BoolFlag{Name: "layers", Usage: "show the memory of every layer"},
	&cli.StringFlag{Name: "max-memory", Usage: "find the largest batch and the fewest workers for actions of `SIZE`"},
	&cli.StringSliceFlag{
		Name:  "what-if",
		Usage: "compare a `GRID`: workers=1..8, batch=32,64, both with a comma between, or policy=all (repeatable)",
	},
	&cli.StringFlag{
		Name: "against", Value: string(scheduler.AgainstCost),
		Usage: "with --what-if: plot time against `METRIC`: cost or memory",
	},
	&cli.StringFlag{Name: "plot", Usage: "with --what-if: write the plot to `FILE`.svg or FILE.png"},
}

// estimateQuestions is what estimate answers besides the plan.
type estimateQuestions struct {
	service.Questions
	Layers bool        // every layer's share is shown
	Plot   string      // file of the picture; "": none
	Format plot.Format // of the picture
}

// Plain says whether to show the plan itself.
func (q estimateQuestions) Plain() bool {
	return q.Explain || q.Layers || q.MaxMemory == 0 && q.Grid == nil && len(q.Policies) == 0
}

// readEstimateQuestions reads the flags. It returns all faults at once, as *disdel.Faults.
func readEstimateQuestions(c *cli.Context) (estimateQuestions, error) {
	var r questionReader
	r.Explain, r.Layers = c.Bool("explain"), c.Bool("layers")
	if c.IsSet("max-memory") {
		r.memory(c.String("max-memory"))
	}
	if c.IsSet("what-if") {
		r.whatIf(c.StringSlice("what-if"))
	}
	r.axis(c.String("against"), c.IsSet("against"), r.Grid != nil)
	if c.IsSet("plot") {
		r.picture(c.String("plot"), r.Grid != nil)
	}
	if len(r.faults) > 0 {
		return r.estimateQuestions, &disdel.Faults{Faults: r.faults}
	}
	return r.estimateQuestions, nil
}

type questionReader struct {
	estimateQuestions
	faults []disdel.Fault
}

func (r *questionReader) fault(flag, hint, format string, args ...any) {
	r.faults = append(r.faults,
		disdel.Fault{Path: "--" + flag, Msg: terminal.Clean(fmt.Sprintf(format, args...)), Hint: hint})
}

func (r *questionReader) memory(text string) {
	b, err := disdel.ParseBytes(text)
	if r.MaxMemory = b; err != nil || b < disdel.MB {
		r.fault("max-memory", "write a number and a unit, such as 256MB", "%q is not a size of memory", text)
	}
}

func (r *questionReader) axis(text string, set, grid bool) {
	r.Against = scheduler.Objective(text)
	if r.Against != scheduler.AgainstCost && r.Against != scheduler.AgainstMemory {
		r.fault("against", "write cost or memory", "there is no %q to hold time against", text)
	}
	if set && !grid {
		r.fault("against", "add --what-if workers=1..8", "there is nothing to compare")
	}
}

func (r *questionReader) picture(file string, grid bool) {
	r.Plot = file
	r.Format = plot.Format(strings.ToLower(strings.TrimPrefix(filepath.Ext(file), ".")))
	if r.Format != plot.SVG && r.Format != plot.PNG {
		r.fault("plot", "write a name that ends in .svg or .png", "%q says no format", file)
	}
	if !grid {
		r.fault("plot", "add --what-if workers=1..8", "there is nothing to draw")
	}
}

// Bounds of a grid: larger ones are a slip of the pen, and nobody reads their table.
const (
	maxGridValue = 1 << 20
	maxCells     = 2000
)

const gridHint = "write workers=1..8, batch=32,64,128 or both with a comma between"

// whatIf reads --what-if: names with lists of numbers. A comma starts the next number or the next name.
func (r *questionReader) whatIf(values []string) {
	values = r.policies(values)
	if len(values) == 0 {
		return
	}
	var g scheduler.Grid
	lists := map[string]*[]int{"workers": &g.Workers, "batch": &g.Batches}
	for _, value := range values {
		var list *[]int
		var unknown bool
		for piece := range strings.SplitSeq(value, ",") {
			text := piece
			if name, numbers, named := strings.Cut(piece, "="); named {
				list, text = lists[strings.TrimSpace(name)], numbers
				if unknown = list == nil; unknown {
					r.noDimension(strings.TrimSpace(name))
				}
			}
			switch {
			case list != nil:
				*list = append(*list, r.numbers(text)...)
			case !unknown:
				r.fault("what-if", gridHint, "%q names no dimension", piece)
			}
		}
	}
	for _, l := range lists {
		slices.Sort(*l)
		*l = slices.Compact(*l)
	}
	if n := max(len(g.Workers), 1) * max(len(g.Batches), 1); n > maxCells {
		r.fault("what-if", "take fewer numbers", "%d combinations are too many: at most %d", n, maxCells)
	}
	r.Grid = &g
}

// policies removes the values about policies (policy=all, or names) from the list and returns the others.
func (r *questionReader) policies(values []string) (others []string) {
	for _, value := range values {
		text, isPolicy := strings.CutPrefix(strings.TrimSpace(value), "policy=")
		switch {
		case !isPolicy:
			others = append(others, value)
		case text == "all":
			r.Policies = scheduler.PolicyNames()
		default:
			r.Policies = append(r.Policies, strings.Split(text, ",")...)
		}
	}
	for _, name := range r.Policies {
		if !slices.Contains(scheduler.PolicyNames(), name) {
			r.fault("what-if", "policy=all, or some of "+strings.Join(scheduler.PolicyNames(), ","),
				"there is no policy %q", name)
		}
	}
	return others
}

func (r *questionReader) noDimension(name string) {
	hint := gridHint
	if near := spelling.Closest(name, []string{"workers", "batch"}); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	r.fault("what-if", hint, "there is no dimension %q", name)
}

// numbers reads one number, or a range that includes both ends.
func (r *questionReader) numbers(text string) []int {
	from, to, isRange := strings.Cut(strings.TrimSpace(text), "..")
	if !isRange {
		to = from
	}
	low, err1 := strconv.Atoi(from)
	high, err2 := strconv.Atoi(to)
	switch {
	case err1 != nil || err2 != nil || low < 1:
		r.fault("what-if", "write whole numbers from 1, such as 1,2,4, or a range such as 1..8", "%q is no number or range",
			text)
	case high < low:
		r.fault("what-if", fmt.Sprintf("write %d..%d", high, low), "the range %q ends before it starts", text)
	case high > maxGridValue:
		r.fault("what-if", "", "%d is too large: at most %d", high, maxGridValue)
	case high-low >= maxCells:
		r.fault("what-if", fmt.Sprintf("write a shorter range, such as %d..%d", low, low+7),
			"the range %q has more than %d numbers", text, maxCells)
	default:
		out := make([]int, 0, high-low+1)
		for v := low; v <= high; v++ {
			out = append(out, v)
		}
		return out
	}
	return nil
}
