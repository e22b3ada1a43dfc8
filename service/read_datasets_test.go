package service

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/service/tenant"
)

// twoRows is a data set whose content depends on a byte.
func twoRows(name string, first byte) dataset.Input {
	return dataset.Input{Name: name, Train: dataset.Samples{
		Shape: []int{1, 1, 2}, U8: []byte{first, 2, 3, 4}, Labels: []int32{0, 1},
	}}
}

// reads has a job of a tenant read a data set, until the test ends.
func reads(t *testing.T, s *Service, id disdel.JobID, data string) {
	t.Helper()
	h, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := disdel.Record{
		APIVersion: disdel.APIVersion, ID: id, Status: disdel.StatusRunning, Created: time.Now(), Tenant: s.whose(),
	}
	r.Data.Name, r.Job.Data.Source = data, "dataset://"+data
	if err := h.Save(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	own, err := s.own(t.Context(), id, data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { own.End(context.WithoutCancel(t.Context())) })
}

// No way replaces the content of a data set that a job reads, be it the owner's job or one of a tenant with whom the
// data set is shared. The same content is no change.
func TestADataSetThatAJobReadsIsNotReplaced(t *testing.T) {
	all := opened(t, t.TempDir())
	for _, name := range []string{"ann", "bob"} {
		if _, err := all.Tenants().Create(t.Context(), name, tenant.RoleSubmit, nil); err != nil {
			t.Fatal(err)
		}
	}
	ann, bob := all.Tenant("ann"), all.Tenant("bob")
	store, err := ann.Datasets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"own", "lent", "digits", "free"} {
		if _, err := store.Add(t.Context(), twoRows(name, 1), false); err != nil {
			t.Fatal(err)
		}
	}
	reads(t, ann, pausedJob, "own")
	reads(t, ann, "job-01kp0000000000000000000004", "digits")
	reads(t, bob, endedJob, "ann/lent")
	for name, reader := range map[string]string{"own": pausedJob, "lent": "a job of bob"} {
		if _, err := store.Add(t.Context(), twoRows(name, 1), true); err != nil {
			t.Errorf("%s with the same content: %v", name, err)
		}
		before, _ := store.Manifest(t.Context(), name)
		_, err := store.Add(t.Context(), twoRows(name, 9), true)
		if disdel.KindOf(err) != disdel.Conflict || !strings.Contains(err.Error(), reader+" is reading "+name) {
			t.Errorf("%s is replaced: %v", name, err)
		}
		if after, err := store.Manifest(t.Context(), name); err != nil || after.Checksum() != before.Checksum() {
			t.Errorf("%s has changed: %v", name, err)
		}
	}
	if _, err := ann.AddKnown(t.Context(), "digits", true); disdel.KindOf(err) != disdel.Conflict {
		t.Errorf("a public data set replaces one that a job reads: %v", err)
	}
	if err := bob.AddDigits(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := store.Add(t.Context(), twoRows("free", 9), true); err != nil {
		t.Errorf("one that no job reads: %v", err)
	}
	if err := ann.AddDigits(t.Context()); disdel.KindOf(err) != disdel.Conflict {
		t.Errorf("AddDigits replaces the user's own digits: %v", err)
	}
}
