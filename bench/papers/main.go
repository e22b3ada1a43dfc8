// Command papers runs the benches that measure what other systems' papers claim, and puts their headline figures on one
// page: system, claim, what makes the comparison fair, and what came of it here. A bench that is not built, or fails,
// has a
// dash.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// headline is a row of the page.
type headline struct {
	system, claim string
	fair          string   // what is measured, so that the two can be compared
	command       string   // of benches
	figures       []string // of its lines
}

// headlines are the systems' own claims, beside figures of the benches that measure them.
var headlines = []headline{
	{
		"DiSDeL", "-46 % of the time of one container, -40 % of bare metal's",
		"mean of eight pairs over TensorFlow, and over our own engine", "paper",
		[]string{"fig8_time_tf_default", "fig8_time_tf_baremetal", "fig8_time_default", "fig8_time_baremetal"},
	},
	{
		"DiSDeL", "-44 % of the memory of an action, 8.9 % more at once", "the same runs", "paper",
		[]string{"fig7_action_tf_default", "fig7_sum_tf_default", "fig7_action_default", "fig7_sum_default"},
	},
	{
		"DiSDeL", "nothing is lost to retries, nothing fails", "the motivation's job; a batch of eight", "paper",
		[]string{"fig2_lost_s", "fig2_attempts", "fig12_failures"},
	},
	{
		"DiSDeL", "-52.3 % in a pool of twice the memory", "four actions with a quarter of the processors each", "paper",
		[]string{"fig11_ratio"},
	},
	{
		"DiSDeL", "-55 % and -29 % for a batch of eight",
		"the largest containers, and bare processes, of TensorFlow and ours", "paper",
		[]string{"fig12_tf_default", "fig12_tf_baremetal", "fig12_default", "fig12_default_slots", "fig12_baremetal"},
	},
	{
		"DiSDeL", "0.60 from 4 to 8 servers", "simulated, calibrated on Fig. 8 in two readings", "paper",
		[]string{"fig13_8over4", "fig13_8over4_spread"},
	},
	{
		"KubeML", "workers by the epoch, faster than a fixed number",
		"time and cost over the best fixed number, worst of six laws, simulated; its published rule beside ours", "policies",
		[]string{"elastic_time", "kubeml_time", "elastic_cost", "kubeml_cost"},
	},
	{
		"KubeML", "weights by one key for each layer", "eight updates averaged, over its way", "aggregator",
		[]string{"vs_kubeml"},
	},
	{
		"Coach", "epochs that remain, from a fit of the loss",
		"relative error at half-way on losses of networks that were trained; its published fit beside ours", "policies",
		[]string{"convergence_error_half", "convergence_error_half_coach"},
	},
	{
		"Coach", "workers by marginal utility",
		"time and cost over the best fixed number, simulated; the published rule beside", "policies",
		[]string{"coach_time", "coach-published_time", "coach_cost", "coach-published_cost"},
	},
	{
		"Coach", "gangs that do not stop each other", "draws in which jobs wait for each other for ever, of 200", "tenants",
		[]string{"stuck_gang", "stuck_ganglike", "stuck_greedy"},
	},
	{
		"MLLess", "its tuner raises Perf/$", "Perf/$ over no tuner, best job and worst run, by a virtual clock", "exchange",
		[]string{"tuner_best", "tuner_worst"},
	},
	{
		"MLLess", "its tuner, in jobs that average by rounds", "Perf/$ over no tuner, simulated; published beside ours",
		"policies",
		[]string{"tuner_rounds_best", "tuner_rounds_worst", "tuner_rounds_published_best", "tuner_rounds_published_worst"},
	},
	{
		"MLLess", "significant updates and slack are faster than lock-step",
		"time of lock-step over theirs, by a virtual clock; held-out loss over that without a filter", "exchange",
		[]string{"isp_over_bsp", "ssp_over_bsp_48", "heldout_gap"},
	},
	{
		"SIREN", "functions and memory for every epoch, learned, -36 to -44 %",
		"time over the best fixed choice within the same budget, simulated; and our own schedule's", "policies",
		[]string{"siren_300", "siren_200", "siren_100", "path_300", "path_200", "path_100"},
	},
}

// benches are the commands that print figures, by the name that headlines have for them: of those with parts, only the
// parts that print them.
var benches = map[string][]string{
	"paper": {"bin/bench-paper"}, "policies": {"bin/bench-policies"}, "aggregator": {"bin/bench-aggregator"},
	"exchange": {"bin/bench-exchange", "-parts", "virtual,tuner"}, "tenants": {"bin/bench-tenants", "-parts", "stuck"},
}

func main() {
	only := flag.String("benches", strings.Join(slices.Sorted(maps.Keys(benches)), ","),
		"benches to run; the others' figures are dashes")
	kept := flag.Bool("kept", false, "take the paper's experiments as they were measured before")
	out := flag.String("out", "docs/bench-paper/papers.md", "`FILE` of the page")
	flag.Parse()
	if *kept {
		benches["paper"] = append(benches["paper"], "-again")
	}
	figures := map[string]map[string]string{}
	for name := range strings.SplitSeq(*only, ",") {
		got, err := run(benches[name])
		if err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", name, err)
		}
		figures[name] = got
	}
	if err := write(*out, page(figures)); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs a bench and reads its figures, those before a failure too.
func run(command []string) (map[string]string, error) {
	if len(command) == 0 {
		return nil, errors.New("there is no such bench")
	}
	cmd := exec.Command(command[0], command[1:]...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, os.Stderr
	err := cmd.Run()
	return read(text.String()), err
}

// read reads lines of the form figure NAME VALUE UNIT.
func read(text string) map[string]string {
	out := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 4 && fields[0] == "figure" {
			out[fields[1]] = fields[2] + " " + strings.Join(fields[3:], " ")
		}
	}
	return out
}

// page is the table.
func page(figures map[string]map[string]string) string {
	var b strings.Builder
	b.WriteString("# Headlines of the papers, here\n\nWritten by `make bench-papers`. A dash: the bench was not run, " +
		"or has no such figure here.\n\n| system | its claim | what is measured | here |\n|---|---|---|---|\n")
	for _, h := range headlines {
		var here []string
		for _, name := range h.figures {
			value := figures[h.command][name]
			if value == "" {
				value = "-"
			}
			here = append(here, fmt.Sprintf("`%s` %s", name, value))
		}
		if len(here) == 0 {
			here = []string{"-"}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", h.system, h.claim, h.fair, strings.Join(here, ", "))
	}
	return b.String()
}

func write(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	fmt.Print(text)
	return os.WriteFile(file, []byte(text), 0o600)
}
