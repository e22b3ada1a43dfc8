package main

import (
	"reflect"
	"testing"

	"github.com/disdel/disdel/controller/jobfile"
)

// Every failure of any seed is a job file that disdel reads, every kind is drawn, and the same seed draws the same.
func TestDrawnFailuresAreJobs(t *testing.T) {
	for _, seed := range []uint64{0, 1, 1 << 63} {
		kinds, faults := map[string]int{}, map[fault]bool{}
		for number := range failingJobs {
			f := failingJob(seed, number)
			kinds[f.kind]++
			faults[f.fault] = true
			if _, err := jobfile.Parse("advised.yaml", []byte(f.file), nil); err != nil {
				t.Errorf("%v: %v\n%s", f.args, err, f.file)
			}
			if !reflect.DeepEqual(f, failingJob(seed, number)) {
				t.Errorf("seed %d draws another failure %d the second time", seed, number)
			}
		}
		if len(kinds) != len(failureKinds) || len(faults) != int(diskFills)+1 {
			t.Errorf("seed %d: %v, faults %v", seed, kinds, faults)
		}
	}
}

// Every change of an error and every command of a report is carried out, and what offers none has to say so.
func TestAllAdviceIsRead(t *testing.T) {
	p := &place{submit: []string{"disdel", "submit", "it's.yaml"}}
	got, err := p.refused(outcome{stderr: []byte("a warning {\n" +
		`{"hint": "h", "changes": [["a=1", "b={c: 2}"], ["d=3"]]}` + "\n")})
	if want := (counsel{text: "h", ways: [][]string{
		{`'disdel' 'submit' 'it'\''s.yaml' '--set' 'a=1' '--set' 'b={c: 2}'`},
		{`'disdel' 'submit' 'it'\''s.yaml' '--set' 'd=3'`},
	}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := p.refused(outcome{stderr: []byte("panic\n")}); err == nil {
		t.Error("text is taken for an error")
	}
	got, err = readReport([]byte(`{"advice": {"why": "w", "commands": [{"lines": ["a", "b"]}, {"lines": ["c"]}]}}`))
	if want := (counsel{text: "w", ways: [][]string{{"a", "b"}, {"c"}}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, fine := range map[string]bool{
		"": false, "the job failed": false, "less work: --set a=1, no batch fits": false,
		"a smaller network: no batch fits 128 MB": true, "no field of a job helps": true,
	} {
		if problem := (counsel{text: text}).unhelpful(); (problem == "") != fine {
			t.Errorf("%q: %q", text, problem)
		}
	}
}
