package history

import (
	"testing"

	"github.com/disdel/disdel"
)

// Records of deep networks stay small while a plan uses them: equal layers are shared, and estimates keep only the
// total work of their layers.
func TestLessonsOfDeepNetworksAreSmall(t *testing.T) {
	deep := func(units int) disdel.Record {
		r := disdel.Record{Plan: disdel.Plan{Actions: []disdel.ActionPlan{{Task: disdel.TaskTrain}}}}
		for i := range 900 {
			r.Job.Model.Layers = append(r.Job.Model.Layers, disdel.Layer{Kind: "dense", Units: units})
			e := &r.Plan.Actions[0].Estimate
			e.Layers = append(e.Layers, disdel.LayerEstimate{MACs: int64(i)})
		}
		return r
	}
	l := recordSample{limit: 100, enough: enoughRecent}
	for _, units := range []int{10, 10, 20} {
		l.add(deep(units), 1)
	}
	first, second, other := &l.records[0], &l.records[1], &l.records[2]
	if &first.Job.Model.Layers[0] != &second.Job.Model.Layers[0] {
		t.Error("equal layers are not shared")
	}
	if &first.Job.Model.Layers[0] == &other.Job.Model.Layers[0] || other.Job.Model.Layers[0].Units != 20 {
		t.Error("different layers are shared")
	}
	if e := other.Plan.Actions[0].Estimate; len(e.Layers) != 1 || e.Layers[0].MACs != 900*899/2 {
		t.Errorf("%+v", e.Layers)
	}
}

// Large records end a search by their size, before there are as many as a plan otherwise takes.
func TestLargeRecordsEndASearch(t *testing.T) {
	l := recordSample{limit: 100, enough: enoughRecent}
	n := 1
	for l.add(disdel.Record{}, mostBytes/4) > 0 {
		n++
	}
	if n != 4 {
		t.Errorf("%d records of a quarter of the most bytes", n)
	}
}
