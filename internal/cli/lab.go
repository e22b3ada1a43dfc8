package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/simulate"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
	"github.com/disdel/disdel/service"
)

// labDescription is the help of disdel lab.
const labDescription = "TRACE is as disdel simulate has it; each job runs alone. FILE is a job file: its times are " +
	"the law of its\n   forecasts, so that it has to have run before, or --probe; " +
	"with --run it runs under each policy.\n\n" +
	"   disdel lab --generate 5 --policies elastic,coach,auto\n" +
	"   disdel lab trace.jsonl --hosts 2 --processors 16 --plot workers.svg\n" +
	"   disdel lab trace.jsonl --policies coach,auto --errors .25,.5,2,4,noise:.2\n" +
	"   disdel lab job.yaml --policies static,auto --run"

func labCommand(u *ui) *cli.Command {
	where := slices.DeleteFunc(slices.Clone(simulationFlags), func(f cli.Flag) bool {
		return slices.Contains([]string{"admission", "print"}, f.Names()[0])
	})
	return &cli.Command{
		Name: "lab", Usage: "compare scaling policies with the best fixed number of workers, in virtual time",
		ArgsUsage: "[TRACE | FILE...]", Flags: slices.Concat(labFlags(), where, []cli.Flag{setFlag, probeFlag}),
		Description: labDescription,
		Action: func(c *cli.Context) error {
			q, err := readLabQuestions(c)
			if err != nil {
				return err
			}
			found, err := runLab(c, u, q)
			if err == nil && q.Plot != "" {
				err = render.WriteLabPlot(found, q.Plot, q.Format)
			}
			if err != nil {
				return err
			}
			return u.Show(found, func(w io.Writer) { render.PrintLab(w, found) })
		},
	}
}

// runLab compares policies on the jobs of a trace or of job files.
func runLab(c *cli.Context, u *ui, q labQuestions) (found simulate.Lab, err error) {
	if len(q.Files) == 0 {
		jobs, err := readTrace(c, u.In, labEpochs)
		if err != nil {
			return found, err
		}
		cloud, err := simulatedCloud(c)
		if err != nil {
			return found, err
		}
		return service.Compare(service.Simulation{Cloud: cloud, Told: q.Told, Errors: q.Errors}, q.Bounded(jobs), q.Policies)
	}
	var jobs []service.Request
	for _, name := range q.Files {
		src, err := readJob(c, u, name)
		if err != nil {
			return found, err
		}
		jobs = append(jobs, src.request(c))
	}
	err = withClient(c, u, allParts, func(ctx context.Context, at client.Client) error {
		if found, err = simulatePolicies(ctx, at.Jobs, jobs, q.Policies); err != nil || !q.Run {
			return err
		}
		trials, err := runUnderPolicies(ctx, at.Jobs, jobs, q.Policies, func(t simulate.Trial) {
			u.Say("%s", render.TrialLine(t))
		})
		found.Ran(trials)
		return err
	})
	return found, err
}

// labFlags are the flags of lab besides those of the trace and the cloud.
func labFlags() []cli.Flag {
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

// labQuestions is what the flags of lab ask for.
type labQuestions struct {
	Policies []string
	Most     int         // workers
	Told     float64     // factor of the times that policies are told
	Plot     string      // file of the picture; "": none
	Format   plot.Format // of it
	Errors   simulate.Errors
	Files    []string // of jobs; none: a trace is asked for
	Run      bool
}

// Bounded limits the workers that the policies of the jobs may choose.
func (q labQuestions) Bounded(jobs []sim.Job) []sim.Job {
	for i := range jobs {
		if n := &jobs[i].MaxWorkers; *n == 0 || *n > q.Most {
			*n = q.Most
		}
	}
	return jobs
}

// readLabQuestions reads the flags. It returns Invalid for an unknown policy or picture format.
func readLabQuestions(c *cli.Context) (labQuestions, error) {
	q := labQuestions{
		Policies: scheduler.PolicyNames(), Most: c.Int("max-workers"), Plot: c.String("plot"), Told: c.Float64("told"),
	}
	if !c.IsSet("max-workers") {
		q.Most = defaultMost
	}
	if q.Most < 1 {
		return q, invalidFlag("--max-workers must be at least 1", "")
	}
	if !(q.Told > 0 && q.Told <= mostTold) {
		return q, invalidFlag("--told must be above 0 and at most 100", "")
	}
	if text := c.String("policies"); text != "all" {
		q.Policies = strings.Split(text, ",")
	}
	for _, name := range q.Policies {
		if !slices.Contains(scheduler.PolicyNames(), name) {
			return q, invalidFlag("there is no policy \""+name+"\"", "--policies all, or some of "+
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
		return q, invalidFlag("--plot: the name says no format", "write a name that ends in .svg or .png")
	}
	return q, nil
}

// jobs reads the operands: files that end in .yaml or .yml are job files.
func (q *labQuestions) jobs(c *cli.Context) error {
	for _, name := range c.Args().Slice() {
		if end := strings.ToLower(filepath.Ext(name)); end == ".yaml" || end == ".yml" {
			q.Files = append(q.Files, name)
		}
	}
	q.Run = c.Bool("run")
	switch {
	case q.Run && len(q.Files) == 0:
		return invalidFlag("--run: only jobs of files can be run", "disdel lab job.yaml --run")
	case len(q.Files) > 0 && len(q.Files) < c.NArg():
		return invalidFlag("job files and traces do not go together", "name files that end in .yaml, or one trace")
	case len(q.Files) > 0 && (c.IsSet("errors") || c.IsSet("told")):
		return invalidFlag("--errors and --told are for traces", "disdel simulate --generate 5 --print > trace.jsonl")
	}
	return q.errors(c.String("errors"))
}

// errors reads the errors of --errors, whose regret is computed.
func (q *labQuestions) errors(text string) error {
	if text == "" {
		return nil
	}
	for piece := range strings.SplitSeq(text, ",") {
		number, noise := strings.CutPrefix(strings.TrimSpace(piece), "noise:")
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || !(v > 0 && v <= mostTold) {
			return invalidFlag("--errors: \""+piece+"\" is no factor above 0 and at most 100", "--errors .25,.5,2,4,noise:.2")
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

func invalidFlag(msg, hint string) error {
	return &disdel.Error{Kind: disdel.Invalid, Msg: msg, Hint: hint}
}

// simulatePolicies asks the service what the jobs would take under each policy. It returns NotFound, with the job,
// if nothing is known of its speed.
func simulatePolicies(ctx context.Context, at client.Jobs, jobs []service.Request, policies []string) (simulate.Lab,
	error,
) {
	var out simulate.Lab
	for _, req := range jobs {
		found, err := at.Estimate(ctx, req, service.Questions{Policies: policies})
		if err != nil {
			return out, err
		}
		if found.Policies == nil {
			return out, found.Refused
		}
		out.Add(*found.Policies)
	}
	return out, nil
}

// runUnderPolicies runs each job under each policy, one after another, and calls ended after each trial. The policy
// static runs first, because the others are compared with it. A job that fails is a trial too; a job that cannot be
// submitted ends the run.
func runUnderPolicies(ctx context.Context, at client.Jobs, jobs []service.Request, policies []string,
	ended func(simulate.Trial),
) ([]simulate.Trial, error) {
	var out []simulate.Trial
	for _, req := range jobs {
		for _, name := range staticFirst(policies) {
			under := req
			under.Job.Distribution.Policy, under.Key = name, ""
			run, err := at.Submit(ctx, under)
			if err != nil {
				return out, err
			}
			stop := context.AfterFunc(ctx, func() { run.Cancel(context.Cause(ctx)) })
			rec, err := run.Wait(context.WithoutCancel(ctx))
			stop()
			if err != nil {
				return out, err
			}
			t := trialOf(&rec, name)
			ended(t)
			if out = append(out, t); ctx.Err() != nil {
				return out, errors.Join(context.Cause(ctx), ctx.Err())
			}
		}
	}
	return out, nil
}

// staticFirst returns the policies with static before the others.
func staticFirst(policies []string) []string {
	out := []string{disdel.PolicyStatic}
	for _, name := range policies {
		if name != disdel.PolicyStatic {
			out = append(out, name)
		}
	}
	return out
}

// trialOf is the trial that a record shows.
func trialOf(r *disdel.Record, policy string) simulate.Trial {
	t := simulate.Trial{
		Job: disdel.JobID(r.Job.Metadata.Name), Policy: policy, Status: r.Status,
		Took: r.Phases.Total, CostGBs: r.MeteredCost(),
	}
	if r.Failure != nil {
		t.Why = r.Failure.Msg
	}
	var at disdel.Millis
	for _, round := range r.Rounds {
		stage := r.StageOf(&disdel.Invocation{Stage: round.Stage})
		if n := len(t.Course); n == 0 || t.Course[n-1].Workers != stage.Workers {
			t.Course = append(t.Course, simulate.WorkerChange{At: at, Epoch: r.EpochsAfter(round), Workers: stage.Workers})
		}
		at += round.Duration
		t.Loss = round.TrainLoss
	}
	return t
}

func simulateCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "simulate", Usage: "simulate many jobs on a cluster, in virtual time", ArgsUsage: "[TRACE]",
		Description: "TRACE is a file of JSON lines, one job each; - is standard input. " +
			"Planner, manager and admission are\n" +
			"those of real jobs. --pool-memory is the memory of all hosts together (default: 2 GB each).\n\n" +
			"   disdel simulate --generate 100 --seed 7 --admission greedy\n" +
			"   disdel simulate --generate 100 --seed 7 --print > trace.jsonl\n" +
			"   disdel simulate trace.jsonl --hosts 4 --pool-memory 8GB -o json",
		Flags: simulationFlags,
		Action: func(c *cli.Context) error {
			jobs, err := readTrace(c, u.In, 0)
			if err != nil {
				return err
			}
			if c.Bool("print") {
				return sim.Write(u.Out, jobs)
			}
			cloud, err := simulatedCloud(c)
			if err != nil {
				return err
			}
			r, err := service.Simulate(service.Simulation{Cloud: cloud, Admission: c.String("admission")}, jobs)
			if err != nil {
				return err
			}
			return u.Show(r, func(w io.Writer) { render.PrintSimulation(w, r) })
		},
	}
}

// simulationFlags are those of simulate.
var simulationFlags = []cli.Flag{
	&cli.StringFlag{
		Name: "admission", Value: "gang",
		Usage: "queueing `ORDER`: gang, fifo, greedy (plain OpenWhisk) or ganglike (Coach)",
	},
	&cli.IntFlag{Name: "hosts", Value: 1, Usage: "`NUMBER` of hosts with containers"},
	&cli.IntFlag{Name: "processors", Value: 2, Usage: "`NUMBER` of processors of each host; 0: unlimited"},
	&cli.IntFlag{Name: "concurrent", Usage: "`NUMBER` of concurrent invocations of a namespace; 0: unlimited"},
	&cli.IntFlag{Name: "per-minute", Usage: "`NUMBER` of invocations of a namespace per minute; 0: unlimited"},
	&cli.DurationFlag{Name: "cold", Value: 500 * time.Millisecond, Usage: "start `TIME` of a new container"},
	&cli.DurationFlag{Name: "warm", Value: 10 * time.Millisecond, Usage: "start `TIME` of a warm container"},
	&cli.IntFlag{Name: "generate", Usage: "generate `NUMBER` of jobs instead of reading a trace"},
	&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "`NUMBER` that seeds the generated jobs"},
	&cli.DurationFlag{Name: "every", Value: 5 * time.Second, Usage: "mean `TIME` between arrivals; 0: all arrive at once"},
	&cli.IntFlag{Name: "tenants", Value: 3, Usage: "`NUMBER` of tenants of the generated jobs"},
	&cli.BoolFlag{Name: "print", Usage: "print the trace instead of running it"},
}

// labEpochs is how many more epochs the generated jobs of lab have than those of simulate. A policy needs some epochs
// to measure, and as many to gain from it.
const labEpochs = 20

// readTrace reads the jobs of a file, or generates them with longer more epochs.
func readTrace(c *cli.Context, in io.Reader, longer int) ([]sim.Job, error) {
	n := c.Int("generate")
	if n > 0 {
		if err := checkOperands(c, 0, 0); err != nil {
			return nil, err
		}
		return sim.Generate(sim.Draw{
			Jobs: n, Seed: c.Uint64("seed"), Every: disdel.Millis(c.Duration("every")), Tenants: c.Int("tenants"),
			Longer: longer,
		}), nil
	}
	if c.IsSet("generate") {
		return nil, &disdel.Error{Kind: disdel.Invalid, Msg: "--generate must be at least 1"}
	}
	if err := checkOperands(c, 1, 1); err != nil {
		return nil, err
	}
	name := c.Args().First()
	if name == "-" {
		return sim.Read(in)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, &disdel.Error{
			Kind: disdel.NotFound, Op: "read trace", Msg: err.Error(),
			Hint: "disdel simulate --generate 20 --print > trace.jsonl",
		}
	}
	defer f.Close() //nolint:errcheck // it is only read
	return sim.Read(f)
}

// simulatedCloud is the cloud that the flags describe.
func simulatedCloud(c *cli.Context) (sim.Config, error) {
	cfg := sim.Config{
		Invokers: c.Int("hosts"), Memory: 2 * disdel.GB, Processors: c.Int("processors"), Concurrent: c.Int("concurrent"),
		PerMinute: c.Int("per-minute"), Cold: disdel.Millis(c.Duration("cold")), Warm: disdel.Millis(c.Duration("warm")),
	}
	for _, flag := range []string{"processors", "concurrent", "per-minute"} {
		if c.Int(flag) < 0 {
			return cfg, &disdel.Error{Kind: disdel.Invalid, Msg: "--" + flag + " must be at least 0"}
		}
	}
	if cfg.Invokers < 1 {
		return cfg, &disdel.Error{Kind: disdel.Invalid, Msg: "--hosts must be at least 1"}
	}
	if text := c.String("pool-memory"); text != "" {
		pool, err := disdel.ParseBytes(text)
		if err != nil {
			return cfg, err
		}
		cfg.Memory = pool / disdel.Bytes(cfg.Invokers)
	}
	return cfg, nil
}
