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
	"os"
	"os/exec"
	"path/filepath"
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
		"DiSDeL", "-46 % of the time of one container", "one container of the same engine, mean of eight pairs", "paper",
		[]string{"fig8_time_default"},
	},
	{"DiSDeL", "-44 % of the memory of an action", "the same runs", "paper", []string{"fig7_action_default"}},
	{
		"DiSDeL", "-55 % for a batch of eight", "eight containers at the largest limit, one pool", "paper",
		[]string{"fig12_default"},
	},
	{"DiSDeL", "0.60 from 4 to 8 servers", "simulated, calibrated on Fig. 8", "paper", []string{"fig13_8over4"}},
	{"DiSDeL", "no failures", "the same batch", "paper", []string{"fig12_failures"}},
	{"KubeML", "workers by the epoch, faster than a fixed number", "time and cost over the best fixed number, worst of " +
		"six laws, " +
		"simulated; its published rule beside ours", "policies", []string{
		"elastic_time", "kubeml_time", "elastic_cost",
		"kubeml_cost",
	}},
	{
		"KubeML", "weights by one key for each layer", "eight updates averaged, over its way", "aggregator",
		[]string{"vs_kubeml"},
	},
	{
		"Coach", "epochs that remain, from a fit of the loss", "relative error at half-way, simulated", "policies",
		[]string{"convergence_law_half"},
	},
	{
		"Coach", "workers by marginal utility", "time and cost over the best fixed number, simulated; the published rule " +
			"beside", "policies",
		[]string{"coach_time", "coach-published_time", "coach_cost", "coach-published_cost"},
	},
	{
		"MLLess", "scale-in raises Perf/$", "Perf/$ over no tuner, best job and worst run, simulated", "policies",
		[]string{"mlless_best", "mlless_worst"},
	},
	{"SIREN", "workers and memory for every epoch, learned", "not measured yet", "", nil},
}

// benches are the commands that print figures, by the name that headlines have for them.
var benches = map[string][]string{
	"paper":    {"bin/bench-paper"},
	"policies": {"bin/bench-policies"}, "aggregator": {"bin/bench-aggregator"},
}

func main() {
	only := flag.String("benches", "paper,policies,aggregator", "benches to run; the others' figures are dashes")
	out := flag.String("out", "docs/bench-paper/papers.md", "`FILE` of the page")
	flag.Parse()
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
		"or has no such " +
		"figure yet.\n\n| system | its claim | what is measured | here |\n|---|---|---|---|\n")
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
