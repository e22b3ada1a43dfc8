package platform

import (
	"fmt"
	"strings"
	"testing"

	"github.com/disdel/disdel/internal/test/faults"
)

// Whatever call to the disk fails, the platform's store keeps every action and record that it acknowledged, opens again
// and takes more.
func TestAFailedCallToTheDiskLosesNoRecord(t *testing.T) {
	newAction := func(i int) *action {
		return &action{
			header: header{Namespace: "guest", Name: fmt.Sprintf("a%02d", i), Version: "0.0.1"},
			Exec:   execSpec{Kind: "disdel:1", Code: strings.Repeat(fmt.Sprint(i), 3000)},
		}
	}
	newRecord := func(i int) *activation {
		return &activation{
			Namespace: "guest", Name: "a", ActivationID: fmt.Sprintf("%032x", i), Start: int64(1000 + i),
			Logs: []string{strings.Repeat("x", 2000)},
		}
	}
	faults.FailEveryDiskCall(t, func(dir string, done func(string), failed func(error)) {
		s, err := openStore(dir, true, 1000)
		if err != nil {
			failed(err)
			return
		}
		for i := range 4 {
			if err := s.update(func(t tx) error { return t.putAction(newAction(i)) }); err != nil {
				failed(err)
			} else {
				done(fmt.Sprintf("a%02d ", i))
			}
			if err := s.saveRecord(newRecord(i)); err != nil {
				failed(err)
			} else {
				done(newRecord(i).ActivationID)
			}
		}
		if err := s.close(); err != nil {
			failed(err)
		}
	}, func(t *testing.T, dir string, done []string) {
		all, err := told(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range done {
			if !strings.Contains(all, what) {
				t.Errorf("%s was acknowledged, and is gone", what)
			}
		}
		s, err := openStore(dir, true, 1000)
		if err == nil {
			err = s.saveRecord(newRecord(9))
		}
		if err != nil {
			t.Fatalf("a later record: %v", err)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
}
