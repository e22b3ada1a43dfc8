package disdel

// Counterfactual is what training would have taken had nothing changed.
type Counterfactual struct {
	Workers int     `json:"workers"` // that the job began with
	Epochs  int     `json:"epochs"`  // that this goes by: those that they trained
	Took    Millis  `json:"durationMs"`
	UsedGBs float64 `json:"usedGBs"` // by use, without evaluations of the last round
}

// Unchanged is what the epochs that a job trained would have taken with the workers that it began with: each as the
// mean of those that they did train, without the first where there are others, since containers start cold in it. It
// is nil for a job whose workers never changed, and where its policy observed nothing.
func (r *Record) Unchanged() *Counterfactual {
	var own, all []Observation
	for i := range r.Rounds {
		o := r.Rounds[i].Observed
		if o == nil || o.Rows == 0 {
			continue
		}
		all = append(all, *o)
		if o.Setting.Workers == all[0].Setting.Workers {
			own = append(own, *o)
		}
	}
	if len(all) == 0 || len(own) == len(all) {
		return nil
	}
	if len(own) > 1 {
		own = own[1:]
	}
	out := Counterfactual{Workers: all[0].Setting.Workers}
	rows, of, before := 0, 0, 0
	for _, o := range all {
		rows += o.Rows
	}
	for _, o := range own {
		of, out.Took, out.UsedGBs = of+o.Rows, out.Took+o.Duration, out.UsedGBs+o.Cost
		if e := int(o.Epoch); e != before {
			out.Epochs, before = out.Epochs+1, e
		}
	}
	by := float64(rows) / float64(of)
	out.Took, out.UsedGBs = Millis(by*float64(out.Took)), by*out.UsedGBs
	return &out
}
