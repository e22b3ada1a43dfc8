package cli

import (
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/scheduler/sim"
	"github.com/disdel/disdel/service"
)

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
