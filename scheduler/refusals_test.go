package scheduler

import (
	"errors"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/model"
)

// What nobody can plan is refused by the first check that sees it, with the words that name the field.
func TestJobsThatCannotBePlanned(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, in *PlanInput)
		says   string
	}{
		"a program of unknown memory": {func(t *testing.T, in *PlanInput) {
			g, err := model.Build(disdel.Network{
				Name: "net", Input: []int{1, 8, 8}, Classes: 10,
				Custom: &disdel.CustomNetwork{
					Name: "net.py", Input: []int{1, 8, 8}, Classes: 10,
					Params: []disdel.CustomParam{{Name: "w", Shape: []int{10, 64}, Trainable: true}},
					Python: &disdel.PythonNetwork{
						Code: "sha256:ab", Entry: "Net", Form: disdel.PythonModule, Factor: 1.2, Basis: disdel.MemoryGiven,
						Floor: 100 * disdel.MB, Warnings: []string{"it has its own data"},
					},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			in.Graph = g
		}, "resources.memory is missing, and disdel cannot find the memory of net.py out: it has its own data"},
		"too many stages": {
			func(_ *testing.T, in *PlanInput) { in.Job.Distribution.Stages = 99 },
			"distribution.stages: lenet5 has at most",
		},
		"a policy that is none": {
			func(_ *testing.T, in *PlanInput) { in.Job.Distribution.Policy = "guess" },
			`there is no policy "guess"`,
		},
	} {
		in := planInput(t)
		c.change(t, &in)
		if _, err := NewPlan(in); !errors.Is(err, disdel.Invalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// A refusal of one field has its path, so that nobody looks for it in the text.
func TestARefusalNamesItsField(t *testing.T) {
	for path, change := range map[string]func(*PlanInput){
		"distribution.stages": func(in *PlanInput) { in.Job.Distribution.Stages = 99 },
		"training.recompute": func(in *PlanInput) {
			in.Job.Training.Recompute, in.Job.Training.Precision = disdel.RecomputeAuto, disdel.PrecisionBF16
		},
	} {
		in := planInput(t)
		change(&in)
		if e := disdel.AsError(CheckNetwork(in)); e.Path != path || !strings.HasPrefix(e.Msg, path+": ") {
			t.Errorf("%s: %+v", path, e)
		}
	}
}

// A cell that no memory helps says why, and shows no plan.
func TestACellThatNoMemoryHelpsSaysWhy(t *testing.T) {
	in := planInput(t)
	in.Job.Resources.MaxCost, in.Job.Distribution.Workers = 1e-9, 1
	for _, c := range WhatIf(in, Grid{Workers: []int{1, 2}}, AgainstCost) {
		if c.Limit != 0 || c.Memory.Likely != 0 || !strings.Contains(c.Note, "the job costs") {
			t.Errorf("%+v", c)
		}
	}
}

// Each value of --admission has its allocator; any other is refused with the values.
func TestAnAdmissionThatIsNoneIsRefused(t *testing.T) {
	for name, want := range map[string]Allocator{
		"": Gangs{}, AdmissionGang: Gangs{}, AdmissionFIFO: FIFO{}, AdmissionGreedy: Greedy{},
		AdmissionGangLike: GangLike{},
	} {
		if got, err := AllocatorOf(name); err != nil || got != want {
			t.Errorf("%q: %T, %v", name, got, err)
		}
	}
	if a, err := AllocatorOf("lifo"); a != nil || !errors.Is(err, disdel.Invalid) ||
		!strings.Contains(disdel.AsError(err).Hint, "gang, fifo, greedy or ganglike") {
		t.Errorf("%v, %v", a, err)
	}
}
