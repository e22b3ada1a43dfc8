package modelstore

import (
	"testing"

	"github.com/disdel/disdel"
)

// A version that learned nothing is not what its name means while there is one that did; by its number it is there.
func TestANameMeansTheNewestVersionThatLearned(t *testing.T) {
	s, _ := open(t)
	for i, learned := range []*bool{nil, new(true), new(false), new(false)} {
		m := write(t, s, disdel.JobID(string(rune('a'+i))))
		m.Learned = learned
		if _, err := s.Commit(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := s.Get(ctx, "m"); err != nil || m.Version != 2 {
		t.Errorf("m is v%d, %v", m.Version, err)
	}
	if m, err := s.Get(ctx, "m:v4"); err != nil || m.Version != 4 {
		t.Errorf("m:v4 is v%d, %v", m.Version, err)
	}
	for i := range 3 {
		m := write(t, s, disdel.JobID(string(rune('x'+i))))
		m.Learned = new(false)
		if _, err := s.Commit(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Prune(ctx, "m", 1); err != nil {
		t.Fatal(err)
	}
	if m, err := s.Get(ctx, "m"); err != nil || m.Version != 2 {
		t.Errorf("after older ones went m is v%d, %v", m.Version, err)
	}
	only := write(t, s, "job-x")
	only.Name, only.Learned, only.Path = "n", new(false), WeightsPath("n", "job-x")
	if _, err := s.Commit(ctx, only); err != nil {
		t.Fatal(err)
	}
	if m, err := s.Get(ctx, "n"); err != nil || m.Version != 1 {
		t.Errorf("the only one is v%d, %v", m.Version, err)
	}
}

func TestAVersionIsDescribedAnew(t *testing.T) {
	s, _ := open(t)
	m, err := s.Commit(ctx, write(t, s, "job-1"))
	if err != nil {
		t.Fatal(err)
	}
	m.Accuracy, m.Evaluated = 0.75, new(true)
	if err := s.UpdateDescription(ctx, m); err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(ctx, "m")
	if err != nil || got.Accuracy != 0.75 || got.Version != 1 || got.Path != m.Path {
		t.Errorf("%+v, %v", got, err)
	}
	if list, err := s.List(ctx); err != nil || len(list) != 1 {
		t.Errorf("%d versions, %v", len(list), err)
	}
}
