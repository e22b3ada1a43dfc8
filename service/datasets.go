package service

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/platform/local"
	"github.com/disdel/disdel/service/lease"
	"github.com/disdel/disdel/service/tenant"
)

// digits is the name of the data set in this program.
const digits = "digits"

// downloadTimeout bounds the download of one file.
const downloadTimeout = 10 * time.Minute

// AddDigits adds the data set "digits" of this program, 1,797 images of handwritten digits, if it is missing. It returns
// Conflict if there is another data set of that name.
func (s *Service) AddDigits(ctx context.Context) error {
	_, err := s.AddKnown(ctx, digits, false)
	return err
}

// AddKnown adds a public data set by its name. Its files come from an installed package or from their public address,
// and have pinned checksums. It returns Invalid for an unknown name, Conflict if there is another data set of the name
// and overwrite is false, and Unavailable if the files cannot be fetched.
func (s *Service) AddKnown(ctx context.Context, name string, overwrite bool) (m dataset.Manifest, err error) {
	store, err := s.Datasets(ctx)
	if err != nil {
		return m, err
	}
	in, err := known(ctx, name)
	if err != nil {
		return m, err
	}
	release, err := s.ClaimDisk(ctx, InputBytes(&in))
	if err != nil {
		return m, err
	}
	defer release()
	return store.Add(ctx, in, overwrite)
}

func known(ctx context.Context, name string) (dataset.Input, error) {
	if name == digits {
		in, err := dataset.Digits()
		in.Name = name
		return in, err
	}
	r, ok := dataset.FindRecipe(name)
	if !ok {
		return dataset.Input{}, &disdel.Error{
			Kind: disdel.Invalid, Op: "add data set", Msg: fmt.Sprintf("no data set is known as %q", name),
			Hint: "known: " + strings.Join(dataset.Known(), ", ") +
				"; your own: --csv FILE --label COLUMN, or --images FILE --labels FILE",
		}
	}
	return r.Fetch(ctx, &http.Client{Timeout: downloadTimeout})
}

// InputBytes is the size of the rows of a data set that was read from files.
func InputBytes(in *dataset.Input) disdel.Bytes {
	size := func(s *dataset.Samples) int {
		return len(s.U8) + 4*len(s.F32) + 4*len(s.Labels)
	}
	all := size(&in.Train)
	if in.Test != nil {
		all += size(in.Test)
	}
	return disdel.Bytes(all)
}

// hasHistory reports whether there is a history, so that looking into it makes none.
func (s *core) hasHistory() bool {
	_, none := os.Stat(local.HistoryFile(s.cfg.Home))
	return s.cfg.CouchDB != "" || none == nil
}

// hasFilesOfJobs tells whether the home has checkpoints or trained weights of a job, of whatever tenant.
func (s *core) hasFilesOfJobs() bool {
	return slices.ContainsFunc([]string{".", "tenants/*"}, func(of string) bool {
		models := filepath.Join(s.cfg.Home, of, "models")
		checkpoints, _ := filepath.Glob(filepath.Join(models, "checkpoints/job-*")) // the patterns are well-formed
		weights, _ := filepath.Glob(filepath.Join(models, "weights/*/job-*"))
		return len(checkpoints)+len(weights) > 0
	})
}

// RemoveDataset deletes a data set of the tenant and ends its sharing. It returns Denied for a data set of another
// tenant, Conflict if a job reads the data set, and NotFound.
func (s *Service) RemoveDataset(ctx context.Context, name string) (removed dataset.Removed, err error) {
	if err := s.CheckOwn(tenant.ItemDataset, name); err != nil {
		return removed, err
	}
	if err := s.errIfRead(ctx, "remove data set", name); err != nil {
		return removed, err
	}
	if err := s.Forsake(ctx, tenant.ItemDataset, name); err != nil {
		return removed, err
	}
	store, err := s.Datasets(ctx)
	if err != nil {
		return removed, err
	}
	return store.Remove(ctx, name)
}

// errIfRead returns Conflict if a job reads a data set of the tenant.
func (s *Service) errIfRead(ctx context.Context, op, name string) error {
	job := s.Reader(ctx, name)
	if job == "" {
		return nil
	}
	hint := "wait for the job"
	if _, plain, own := strings.Cut(job, "job-"); own {
		hint += ", or cancel it: disdel jobs cancel job-" + plain
	}
	return &disdel.Error{Kind: disdel.Conflict, Op: op, Msg: fmt.Sprintf("%s is reading %s", job, name), Hint: hint}
}

// Reader names a running job that reads a data set of the tenant, for a person: its id, or "a job of" another tenant.
// It is "" if none is known.
func (s *Service) Reader(ctx context.Context, name string) string {
	if !s.hasHistory() {
		return ""
	}
	h, err := s.historyOfAll(ctx)
	if err != nil {
		return ""
	}
	running := lease.MarkedJobs(s.cfg.Home)
	leases, _ := h.Leases(ctx) // unreadable leases are ignored
	host, _ := os.Hostname()
	for _, l := range leases {
		onlyThere := strings.HasPrefix(l.Data, "file:") && l.Owner.Host != host
		if l.Data != s.storage("datasets") || onlyThere {
			continue
		}
		if lives, err := lease.Alive(ctx, h, l); lives || err != nil {
			running = append(running, l.Job)
		}
	}
	for _, id := range running {
		r, err := h.Get(ctx, id)
		switch {
		case err != nil:
		case r.Tenant == s.whose() && r.Data.Name == name:
			return string(id)
		case r.Data.Name == s.owner()+"/"+name:
			return "a job of " + cmp.Or(r.Tenant, "the server's operator")
		}
	}
	return ""
}
