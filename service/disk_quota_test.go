package service

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/tenant"
)

// TestATenantStaysWithinItsDiskQuota draws claims and releases. Stored and claimed bytes never pass the quota. A
// refusal has the figures, and other tenants notice nothing. At the end the whole quota can be claimed.
func TestATenantStaysWithinItsDiskQuota(t *testing.T) {
	s, err := Open(t.Context(), Config{Program: testProgram, Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const quota = 10 * disdel.MB
	for _, name := range []string{"ann", "bob"} {
		if _, err := s.Tenants().Create(t.Context(), name, tenant.RoleSubmit, &scheduler.Quota{Disk: quota}); err != nil {
			t.Fatal(err)
		}
	}
	ann := s.Tenant("ann")
	if err := ann.AddDigits(t.Context()); err != nil {
		t.Fatal(err)
	}
	stored, err := ann.stored(t.Context())
	if err != nil || stored < 100*disdel.KB {
		t.Fatalf("%v stored, %v", stored, err)
	}
	rng := rand.New(rand.NewPCG(31, 8))
	claimed, releases := disdel.Bytes(0), []func(){}
	for range 200 {
		if len(releases) > 0 && rng.IntN(3) == 0 {
			i := rng.IntN(len(releases))
			releases[i]()
			releases = append(releases[:i], releases[i+1:]...)
			continue
		}
		more := disdel.Bytes(1 + rng.Int64N(int64(4*disdel.MB)))
		release, err := ann.ClaimDisk(t.Context(), more)
		fits := stored+claimed+more <= quota
		if fits != (err == nil) {
			t.Fatalf("%v stored, %v claimed, %v more: %v", stored, claimed, more, err)
		}
		if err != nil {
			if disdel.KindOf(err) != disdel.OverLimit || !strings.Contains(err.Error(), quota.String()) {
				t.Errorf("a refusal without figures: %v", err)
			}
			continue
		}
		claimed += more
		releases = append(releases, func() { claimed -= more; release(); release() })
	}
	if _, err := s.Tenant("bob").ClaimDisk(t.Context(), quota); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	for _, release := range releases {
		release()
	}
	if _, err := ann.ClaimDisk(t.Context(), quota-stored); err != nil {
		t.Errorf("all was given back: %v", err)
	}
}

// TestParallelClaimsStayWithinTheDiskQuota has uploads claim, write and release at the same time. The bytes stored at
// the end are within the quota, and the free rest is smaller than the largest upload.
func TestParallelClaimsStayWithinTheDiskQuota(t *testing.T) {
	s, err := Open(t.Context(), Config{Program: testProgram, Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const quota, each = 4 * disdel.MB, 100 * disdel.KB
	if _, err := s.Tenants().Create(t.Context(), "ann", tenant.RoleSubmit, &scheduler.Quota{Disk: quota}); err != nil {
		t.Fatal(err)
	}
	ann := s.Tenant("ann")
	models, err := blobs.Open(t.Context(), ann.storage("models"))
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, each)
	var done sync.WaitGroup
	for i := range 16 {
		done.Go(func() {
			for n := range 20 {
				release, err := ann.ClaimDisk(t.Context(), each)
				if err != nil {
					continue
				}
				err = blobs.WriteAll(t.Context(), models, fmt.Sprintf("weights/%d-%d", i, n), data)
				release()
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	stored, err := ann.stored(t.Context())
	if err != nil || stored > quota || stored < quota-17*each {
		t.Errorf("%v stored of %v, %v", stored, quota, err)
	}
}

// Records of jobs count in the disk quota of their tenant, and not in that of another. A record that grew counts anew.
func TestRecordsCountInTheDiskQuota(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{Program: testProgram, Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ann, bob := s.Tenant("ann"), s.Tenant("bob")
	before := disdel.Bytes(0)
	for i := range 50 {
		rec := disdel.Record{APIVersion: disdel.APIVersion, ID: newJobID(), Status: disdel.StatusSucceeded, Tenant: "ann"}
		for range 2 {
			rec.Warnings = append(rec.Warnings, strings.Repeat("w", 1000))
			if err := h.Save(t.Context(), &rec); err != nil {
				t.Fatal(err)
			}
			stored, err := ann.stored(t.Context())
			if err != nil || stored < before+1000 {
				t.Fatalf("record %d: %v after %v, %v", i, stored, before, err)
			}
			before = stored
		}
	}
	if other, err := bob.stored(t.Context()); err != nil || other != 0 {
		t.Errorf("bob has %v, %v", other, err)
	}
}
