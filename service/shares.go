package service

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/service/infer"
	"github.com/disdel/disdel/service/tenant"
)

// owner is the owner of what this Service makes, as shares name it.
func (s *Service) owner() string { return cmp.Or(s.whose(), tenant.HomeOwner) }

// ownedBy is the Service as an owner sees it.
func (s *core) ownedBy(owner string) *Service {
	if owner == tenant.HomeOwner {
		owner = ""
	}
	return (&Service{core: s}).Tenant(owner)
}

// Share lets other tenants read a data set, a model or a job of this Service's tenant: those named, or all. They cannot
// change or delete it. name is a name, of a job also an id. Share returns NotFound for a missing item or tenant.
func (s *Service) Share(ctx context.Context, kind tenant.ItemKind, name string, with []string, all bool) (tenant.Share,
	error,
) {
	item, err := s.ownItem(ctx, kind, name)
	if err != nil {
		return tenant.Share{}, err
	}
	return s.registry.Share(ctx, item, with, all)
}

// Unshare takes the right to read an item back, see tenant.Registry.Unshare. Jobs that read a data set go on.
func (s *Service) Unshare(ctx context.Context, kind tenant.ItemKind, name string, from []string, all bool) (
	tenant.Share, error,
) {
	item, err := s.ownItem(ctx, kind, name)
	if err != nil {
		return tenant.Share{}, err
	}
	return s.registry.Unshare(ctx, item, from, all)
}

// ShareOf returns who may read an item of this Service's tenant.
func (s *Service) ShareOf(ctx context.Context, kind tenant.ItemKind, name string) (tenant.Share, error) {
	item, err := s.ownItem(ctx, kind, name)
	if err != nil {
		return tenant.Share{}, err
	}
	return s.registry.ShareOf(ctx, item)
}

// Shares lists what this Service's tenant shares.
func (s *Service) Shares(ctx context.Context) ([]tenant.Share, error) {
	return s.registry.Shares(ctx, s.owner())
}

// ownItem finds an item of this Service's tenant. It returns NotFound, and Denied for an item of another tenant.
func (s *Service) ownItem(ctx context.Context, kind tenant.ItemKind, name string) (item tenant.Item, err error) {
	item = tenant.Item{Kind: kind, Owner: s.owner(), Name: name}
	if err := s.CheckOwn(kind, name); err != nil {
		return item, err
	}
	switch kind {
	case tenant.ItemDataset:
		var store *dataset.Store
		if store, err = s.Datasets(ctx); err == nil {
			_, err = store.Manifest(ctx, name)
		}
	case tenant.ItemModel:
		if plain, _, version := strings.Cut(name, ":"); version {
			return item, &disdel.Error{
				Kind: disdel.Invalid, Op: "share", Msg: "a model is shared with all its versions", Hint: "write " + plain,
			}
		}
		var store *modelstore.Store
		if store, err = s.Models(ctx); err == nil {
			_, err = store.Get(ctx, name)
		}
	case tenant.ItemJob:
		var rec disdel.Record
		rec, err = s.ownRecord(ctx, name)
		item.Name, item.Owner = string(rec.ID), cmp.Or(rec.Tenant, tenant.HomeOwner)
	default:
		err = &disdel.Error{
			Kind: disdel.Invalid, Op: "share", Msg: fmt.Sprintf("%.40q cannot be shared", kind),
			Hint: "the kinds are dataset, model and job",
		}
	}
	return item, err
}

// CheckOwn returns Denied for a name OWNER/NAME of another tenant, which no request can change.
func (s *Service) CheckOwn(kind tenant.ItemKind, name string) error {
	owner, plain, named := strings.Cut(name, "/")
	if !named {
		return nil
	}
	hint := "write " + plain
	if owner != s.owner() {
		hint = "ask " + owner + " to do it"
	}
	return &disdel.Error{
		Kind: disdel.Denied, Op: "change " + string(kind),
		Msg: fmt.Sprintf("%.100q names the owner, and only the owner can change a %s", name, kind), Hint: hint,
	}
}

// Forsake ends the sharing of an item that is being deleted, so that a later item of the name is not shared.
func (s *Service) Forsake(ctx context.Context, kind tenant.ItemKind, name string) error {
	if !s.hasHistory() {
		return nil
	}
	_, err := s.registry.Unshare(ctx, tenant.Item{Kind: kind, Owner: s.owner(), Name: name}, nil, false)
	return err
}

// reader returns the Service as the owner of an item sees it, and the item's plain name. ref is NAME, or OWNER/NAME of
// an item that its owner shares; of a model it may have a version or tag. It returns NotFound for an item that is not
// shared, whether or not it exists. The operator, who has no tenant, reads the items of all.
func (s *Service) reader(ctx context.Context, kind tenant.ItemKind, ref string) (*Service, string, error) {
	owner, name, named := strings.Cut(ref, "/")
	if !named || strings.HasPrefix(ref, "sha256:") {
		return s, ref, nil
	}
	if owner == s.owner() {
		return s, name, nil
	}
	if !tenant.IsName(owner) {
		return nil, "", &disdel.Error{
			Kind: disdel.NotFound, Op: "find " + string(kind), Msg: fmt.Sprintf("there is no %s %.80q", kind, ref),
			Hint: "write its name, or OWNER/NAME for one that another tenant shares",
		}
	}
	if s.tenant != nil {
		plain, _, _ := strings.Cut(name, ":")
		share, err := s.registry.ShareOf(ctx, tenant.Item{Kind: kind, Owner: owner, Name: plain})
		if err != nil {
			return nil, "", err
		}
		if !share.Allows(s.whose()) {
			return nil, "", s.notShared(kind, ref)
		}
	}
	return s.ownedBy(owner), name, nil
}

// notShared is the error for an item that another tenant does not share.
func (s *Service) notShared(kind tenant.ItemKind, ref string) error {
	owner, name, _ := strings.Cut(ref, "/")
	return &disdel.Error{
		Kind: disdel.NotFound, Op: "find " + string(kind), Msg: fmt.Sprintf("%.80s shares no %s %.80q with you", owner, kind,
			name), Hint: fmt.Sprintf("ask the owner for it: disdel %s share %.80s --with %s", kind, name, s.owner()),
	}
}

// dataAddress is the blob URL of the store that has a data set, and the name of the data set there.
func (s *Service) dataAddress(ref string) (url, name string) {
	owner, name, named := strings.Cut(ref, "/")
	if !named {
		return s.storage("datasets"), ref
	}
	return s.ownedBy(owner).storage("datasets"), name
}

// FindDataset finds a data set by NAME, or by OWNER/NAME if its owner shares it. It returns NotFound.
func (s *Service) FindDataset(ctx context.Context, ref string) (out infer.Dataset, err error) {
	at, name, err := s.reader(ctx, tenant.ItemDataset, ref)
	if err != nil {
		return out, err
	}
	store, err := at.Datasets(ctx)
	if err != nil {
		return out, err
	}
	m, err := store.Manifest(ctx, name)
	if at != s && disdel.KindOf(err) == disdel.NotFound {
		err = s.notShared(tenant.ItemDataset, ref)
	}
	return infer.Dataset{Manifest: m, Ref: ref, Store: store, URL: at.storage("datasets")}, err
}

// readable is the data sets that a job of a tenant can name: its own, and those that others share with it.
type readable struct {
	s            *Service
	own          *dataset.Store
	acknowledged bool // the job was acknowledged: it goes on although the owner shares the data set no more
}

// Manifest finds a data set by NAME or OWNER/NAME.
func (r readable) Manifest(ctx context.Context, ref string) (dataset.Manifest, error) {
	store, name, err := r.find(ctx, ref)
	if err != nil {
		return dataset.Manifest{}, err
	}
	return store.Manifest(ctx, name)
}

// ClassRows counts the training rows of each class of such a data set.
func (r readable) ClassRows(ctx context.Context, ref string) ([]int, error) {
	store, name, err := r.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	return store.ClassRows(ctx, name)
}

// find returns the store of a data set by NAME or OWNER/NAME, and its name there.
func (r readable) find(ctx context.Context, ref string) (*dataset.Store, string, error) {
	owner, name, named := strings.Cut(ref, "/")
	switch {
	case !named:
		return r.own, ref, nil
	case r.acknowledged && tenant.IsName(owner):
		store, err := r.s.ownedBy(owner).Datasets(ctx)
		return store, name, err
	}
	set, err := r.s.FindDataset(ctx, ref)
	return set.Store, name, err
}

// List lists the tenant's own data sets.
func (r readable) List(ctx context.Context) ([]dataset.Manifest, error) { return r.own.List(ctx) }

// AllDatasets yields the tenant's data sets, then those that others share with it, with their owners.
func (s *Service) AllDatasets(ctx context.Context) iter.Seq2[infer.Dataset, error] {
	return func(yield func(infer.Dataset, error) bool) {
		store, err := s.Datasets(ctx)
		if err != nil {
			yield(infer.Dataset{}, err)
			return
		}
		for m, err := range store.All(ctx) {
			if !yield(infer.Dataset{Manifest: m, Ref: m.Name, Store: store, URL: s.storage("datasets")}, err) {
				return
			}
		}
		for item, err := range s.sharedItems(ctx, tenant.ItemDataset) {
			if err != nil {
				yield(infer.Dataset{}, err)
				return
			}
			set, err := s.FindDataset(ctx, item.Owner+"/"+item.Name)
			if disdel.KindOf(err) != disdel.NotFound && !yield(set, err) {
				return
			}
		}
	}
}

// sharedItems yields the items of a kind that others share with the tenant.
func (s *Service) sharedItems(ctx context.Context, kind tenant.ItemKind) iter.Seq2[tenant.Item, error] {
	return func(yield func(tenant.Item, error) bool) {
		if s.whose() == "" {
			return
		}
		list, err := s.registry.SharedWith(ctx, s.whose(), kind)
		for _, item := range list {
			if !yield(item, nil) {
				return
			}
		}
		if err != nil {
			yield(tenant.Item{}, err)
		}
	}
}

// FindModel finds a model by NAME, NAME:vN or NAME:TAG, or by OWNER/ and these if its owner shares it. The model has
// the name of the reference. It returns the errors of modelstore.Store.Get.
func (s *Service) FindModel(ctx context.Context, ref string) (out infer.FoundModel, err error) {
	at, name, err := s.reader(ctx, tenant.ItemModel, ref)
	if err != nil {
		return out, err
	}
	out = infer.FoundModel{URL: at.storage("models"), History: at.History}
	if out.Store, err = at.Models(ctx); err != nil {
		return out, err
	}
	if out.Model, err = out.Store.Get(ctx, name); at != s {
		if disdel.KindOf(err) == disdel.Invalid {
			err = s.notShared(tenant.ItemModel, ref)
		}
		out.Owner = at.owner()
		out.Model.Name = out.Owner + "/" + out.Model.Name
	}
	return out, s.unknownModel(ctx, at, ref, err)
}

// unknownModel says whose model was not found, and which tenant shares a model of that name. at is the owner whose
// models were searched. Other errors stay.
func (s *Service) unknownModel(ctx context.Context, at *Service, ref string, err error) error {
	if disdel.KindOf(err) != disdel.NotFound {
		return err
	}
	told := *disdel.AsError(err)
	if at != s {
		told.Msg = fmt.Sprintf("models of %s: %s", at.owner(), told.Msg)
		told.Hint = "disdel model list has the versions that others share with you"
		return &told
	}
	name, _, _ := strings.Cut(ref, ":")
	for item, failed := range s.sharedItems(ctx, tenant.ItemModel) {
		if failed == nil && item.Name == name {
			told.Hint = fmt.Sprintf("write %s/%s: %s shares a model of that name with you", item.Owner, ref, item.Owner)
		}
	}
	return &told
}

// StartOf returns the weights that a model's training started from: a model, by the name that the tenant calls it, or
// the checksum of a file. The model may be gone, or not be shared. "": training began with drawn weights.
func (s *Service) StartOf(m *modelstore.Model) string {
	ref := m.Network.Init.Weights
	if ref == "" || strings.HasPrefix(ref, "sha256:") {
		return ref
	}
	owner, _, shared := strings.Cut(m.Name, "/")
	if !shared {
		owner = s.owner()
	}
	switch name, own := s.ownName(ref, owner); {
	case own:
		return name
	case strings.Contains(ref, "/"):
		return ref
	default:
		return owner + "/" + ref
	}
}

// AllModels yields the tenant's models, then those that others share with it, whose names begin with their owners.
func (s *Service) AllModels(ctx context.Context) iter.Seq2[modelstore.Model, error] {
	return func(yield func(modelstore.Model, error) bool) {
		store, err := s.Models(ctx)
		if err != nil {
			yield(modelstore.Model{}, err)
			return
		}
		for m, err := range store.All(ctx) {
			if !yield(m, err) {
				return
			}
		}
		for item, err := range s.sharedItems(ctx, tenant.ItemModel) {
			if err != nil {
				yield(modelstore.Model{}, err)
				return
			}
			versions, err := s.sharedVersions(ctx, item)
			for _, m := range versions {
				if !yield(m, nil) {
					return
				}
			}
			if err != nil && !yield(modelstore.Model{}, err) {
				return
			}
		}
	}
}

// sharedVersions lists the versions of a shared model, with the owner in their names.
func (s *Service) sharedVersions(ctx context.Context, item tenant.Item) ([]modelstore.Model, error) {
	store, err := s.ownedBy(item.Owner).Models(ctx)
	if err != nil {
		return nil, err
	}
	list, err := store.Versions(ctx, item.Name)
	for i := range list {
		list[i].Name = item.Owner + "/" + list[i].Name
	}
	return list, err
}

// ownRecord reads the record of a job of this Service's tenant. It returns NotFound, and Denied for a job that another
// tenant shares.
func (s *Service) ownRecord(ctx context.Context, job string) (disdel.Record, error) {
	h, err := s.History(ctx)
	if err != nil {
		return disdel.Record{}, err
	}
	id, err := s.ResolveOwn(ctx, job)
	if err != nil {
		return disdel.Record{}, err
	}
	return h.Get(ctx, id)
}

// ResolveOwn finds the id of a job of this Service's tenant, as history.Store.Resolve. It returns Denied for a job that
// another tenant shares, because only the owner can change it.
func (s *Service) ResolveOwn(ctx context.Context, job string) (disdel.JobID, error) {
	h, err := s.History(ctx)
	if err != nil {
		return "", err
	}
	id, err := h.Resolve(ctx, job)
	if disdel.KindOf(err) != disdel.NotFound {
		return id, err
	}
	if item, shared := s.sharedJob(ctx, job); shared {
		return "", &disdel.Error{
			Kind: disdel.Denied, Op: "change job", Job: disdel.JobID(item.Name),
			Msg:  fmt.Sprintf("%s is a job of %s, who shares it with you read-only", item.Name, item.Owner),
			Hint: "submit a job of your own: disdel report " + item.Name + " --spec prints its file",
		}
	}
	return "", err
}

// FindJob returns the Service as the owner of a job sees it, and the job's id. job is as for history.Store.Resolve, and
// of a shared job its id, the start of its id or OWNER/NAME. It returns NotFound.
func (s *Service) FindJob(ctx context.Context, job string) (*Service, disdel.JobID, error) {
	h, err := s.History(ctx)
	if err != nil {
		return nil, "", err
	}
	id, err := h.Resolve(ctx, job)
	if disdel.KindOf(err) != disdel.NotFound {
		return s, id, err
	}
	if item, shared := s.sharedJob(ctx, job); shared {
		return s.ownedBy(item.Owner), disdel.JobID(item.Name), nil
	}
	return nil, "", err
}

// shortestStart is the shortest start of an id that names a shared job.
const shortestStart = len("job-") + 6

// sharedJob finds a job that another tenant shares. Of several, the newest counts.
func (s *Service) sharedJob(ctx context.Context, job string) (tenant.Item, bool) {
	list, err := errorless(s.sharedItems(ctx, tenant.ItemJob))
	if err != nil {
		return tenant.Item{}, false
	}
	slices.SortFunc(list, func(a, b tenant.Item) int { return strings.Compare(b.Name, a.Name) })
	owner, name, named := strings.Cut(job, "/")
	for _, item := range list {
		switch {
		case !named && len(job) >= shortestStart && strings.HasPrefix(item.Name, job):
			return item, true
		case named && item.Owner == owner:
			rec, err := s.ownedBy(owner).recordOf(ctx, disdel.JobID(item.Name))
			if err == nil && (rec.Job.Metadata.Name == name || string(rec.ID) == name) {
				return item, true
			}
		}
	}
	return tenant.Item{}, false
}

// errorless is the list of a sequence up to its first error.
func errorless[T any](all iter.Seq2[T, error]) (out []T, err error) {
	for one, err := range all {
		if err != nil {
			return out, err
		}
		out = append(out, one)
	}
	return out, nil
}

func (s *Service) recordOf(ctx context.Context, id disdel.JobID) (disdel.Record, error) {
	h, err := s.History(ctx)
	if err != nil {
		return disdel.Record{}, err
	}
	return h.Get(ctx, id)
}

// mostSharedRead bounds the records of shared jobs that one list reads.
const mostSharedRead = 1000

// SharedJobs lists the records of the jobs that other tenants share and that a query selects, the newest first. The
// name of each begins with its owner. It leaves unreadable records out. It ends after so many bytes of records, and
// after reading 1000 records. Then a query with Before set to next continues; next is empty if there are no more.
func (s *Service) SharedJobs(ctx context.Context, q history.Query, bytes int) (out []disdel.Record,
	next disdel.JobID, err error,
) {
	list, err := s.sharedBefore(ctx, q.Before)
	if err != nil {
		return nil, "", err
	}
	var tags map[disdel.JobID][]string
	if q.Where.String() != "" {
		if tags, err = s.SharedTags(ctx); err != nil {
			return nil, "", err
		}
	}
	limit, read := cmp.Or(q.Limit, history.DefaultLimit), 0
	for i, item := range list {
		rec, size, err := s.ownedBy(item.Owner).sharedRecord(ctx, disdel.JobID(item.Name))
		switch {
		case disdel.KindOf(err) == disdel.Unavailable:
			return nil, "", err
		case err == nil && q.Selects(&rec, tags[rec.ID]):
			rec.Job.Metadata.Name = item.Owner + "/" + cmp.Or(rec.Job.Metadata.Name, string(rec.ID))
			out = append(out, s.shown(rec))
		}
		read += int(size)
		if len(out) == limit {
			return out, "", nil
		}
		if i+1 < len(list) && (read >= bytes || i+1 >= mostSharedRead) {
			return out, disdel.JobID(item.Name), nil
		}
	}
	return out, "", nil
}

// SharedTags returns the tags of the jobs that other tenants share with this one. Only the owner of a job changes its
// tags. Notes about jobs are not shared.
func (s *Service) SharedTags(ctx context.Context) (map[disdel.JobID][]string, error) {
	list, err := errorless(s.sharedItems(ctx, tenant.ItemJob))
	if err != nil {
		return nil, err
	}
	out, byOwner := map[disdel.JobID][]string{}, map[string]map[disdel.JobID]history.Remark{}
	for _, item := range list {
		if _, read := byOwner[item.Owner]; !read {
			h, err := s.ownedBy(item.Owner).History(ctx)
			if err != nil {
				return nil, err
			}
			if byOwner[item.Owner], err = h.Remarks(ctx); err != nil {
				return nil, err
			}
		}
		id := disdel.JobID(item.Name)
		out[id] = byOwner[item.Owner][id].Tags
	}
	return out, nil
}

// sharedBefore lists the jobs that others share with the tenant and that are older than one, the newest first.
func (s *Service) sharedBefore(ctx context.Context, before disdel.JobID) ([]tenant.Item, error) {
	list, err := errorless(s.sharedItems(ctx, tenant.ItemJob))
	list = slices.DeleteFunc(list, func(i tenant.Item) bool { return before != "" && i.Name >= string(before) })
	slices.SortFunc(list, func(a, b tenant.Item) int { return strings.Compare(b.Name, a.Name) })
	return list, err
}

// sharedRecord returns the newest record of a job of this Service's tenant, and the size of the stored one.
func (s *Service) sharedRecord(ctx context.Context, id disdel.JobID) (rec disdel.Record, size disdel.Bytes, err error) {
	h, err := s.History(ctx)
	if err != nil {
		return rec, 0, err
	}
	rec, size, err = h.GetSized(ctx, id)
	if latest, ok := s.latestRecord(id); ok {
		return latest, size, nil
	}
	return rec, size, err
}

// shown returns a record as this Service's tenant may see it: a job of the home hides the operator's files and
// addresses.
func (s *Service) shown(rec disdel.Record) disdel.Record {
	if s.whose() == "" || rec.Tenant != "" {
		return rec
	}
	rec.Place = nil
	if rec.Origin != nil {
		origin := *rec.Origin
		origin.File, origin.Options, rec.Origin = "", nil, &origin
	}
	return rec
}

// ListJobs lists the tenant's jobs that a query selects and those that others share with it, the newest first. It ends
// after about so many bytes of records, or after reading 1000 records of shared jobs. Then a query with Before set to
// next continues; next is empty if there are no more.
func (s *Service) ListJobs(ctx context.Context, q history.Query, bytes int) (list []disdel.Record,
	next disdel.JobID, err error,
) {
	h, err := s.History(ctx)
	if err != nil {
		return nil, "", err
	}
	shared, err := s.sharedBefore(ctx, q.Before)
	if err != nil {
		return nil, "", err
	}
	if len(shared) > 0 {
		bytes /= 2 // each of the two lists has its half
	}
	list, cut, err := h.Page(ctx, q, bytes)
	if err != nil {
		return nil, "", err
	}
	if cut {
		next = list[len(list)-1].ID
	}
	for i := range list {
		if rec, ok := s.Undelivered(list[i].ID); ok {
			list[i] = rec
		}
	}
	others, following, err := s.SharedJobs(ctx, q, bytes)
	if err != nil {
		return nil, "", err
	}
	next, list = max(next, following), append(list, others...)
	list = slices.DeleteFunc(list, func(r disdel.Record) bool { return r.ID < next }) // they come with the next page
	slices.SortFunc(list, func(a, b disdel.Record) int { return strings.Compare(string(b.ID), string(a.ID)) })
	if limit := cmp.Or(q.Limit, history.DefaultLimit); len(list) > limit {
		list = list[:limit]
		if next != "" {
			next = list[limit-1].ID
		}
	}
	return list, next, nil
}
