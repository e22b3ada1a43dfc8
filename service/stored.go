package service

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/platform/local"
)

// StoredKind is the kind of something that takes space in a home or on its storage.
type StoredKind string

// The kinds of stored items.
const (
	StoredData        StoredKind = "data"        // data sets
	StoredModels      StoredKind = "models"      // versions of trained models
	StoredCheckpoints StoredKind = "checkpoints" // of one job each
	StoredWeights     StoredKind = "weights"     // files that were sent with jobs, kept for the next one
	StoredPrograms    StoredKind = "programs"    // code of Python programs
	StoredAnswers     StoredKind = "answers"     // that infer --dataset kept
	StoredLogs        StoredKind = "logs"        // of the platform in the background
	StoredJobs        StoredKind = "jobs"        // records of jobs, in one file
	StoredOther       StoredKind = "other"       // everything else beside data sets and models
)

// StoredItem is something that takes space in a home or on its storage.
type StoredItem struct {
	Kind    StoredKind   `json:"kind"`
	Tenant  string       `json:"tenant,omitempty"` // whose it is; empty: of the tenant, or the home, that asks
	Name    string       `json:"name"`
	Job     disdel.JobID `json:"job,omitempty"` // of an item of StoredJobs; Name is its name then
	Size    disdel.Bytes `json:"sizeBytes"`
	Written time.Time    `json:"written,omitzero"` // the newest file of it
	Kept    string       `json:"kept,omitempty"`   // why it must stay; empty: nothing needs it
}

// StoredOfAll lists what takes space as Stored does, and for the home also what each tenant stores.
func (s *Service) StoredOfAll(ctx context.Context) ([]StoredItem, error) {
	out, err := s.Stored(ctx)
	if err != nil || s.whose() != "" {
		return out, err
	}
	names, err := s.storingTenants(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		items, err := s.Tenant(name).Stored(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			item.Tenant = name
			out = append(out, item)
		}
	}
	return out, nil
}

// storingTenants are the tenants with data sets or models on the storage, also those without a token by now.
func (s *Service) storingTenants(ctx context.Context) (names []string, err error) {
	url := s.storage("tenants")
	bucket, err := blobs.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	for o, err := range bucket.List(ctx, "") {
		if err != nil {
			return nil, blobs.Wrap(err, "list files", url)
		}
		if name, _, ok := strings.Cut(o.Key, "/"); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Stored lists what takes space in the home of this Service, or of its tenant, and on its storage, by kind and name.
func (s *Service) Stored(ctx context.Context) ([]StoredItem, error) {
	l := storedList{items: map[StoredItem]*StoredItem{}}
	models, err := s.Models(ctx)
	if err != nil {
		return nil, err
	}
	list, _ := models.List(ctx) // a version that cannot be read is among the other files
	if err := l.addBucket(ctx, s.storage("datasets"), dataItem); err != nil {
		return nil, err
	}
	if err := l.addHistory(ctx, s); err != nil {
		return nil, err
	}
	ended, err := s.endedJobs(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.addBucket(ctx, s.storage("models"), modelItems(list, ended)); err != nil {
		return nil, err
	}
	needs, err := s.needs(ctx)
	if err != nil {
		return nil, err
	}
	var out []StoredItem
	for _, item := range l.items {
		item.Kept = needs.reason(item, list)
		out = append(out, *item)
	}
	slices.SortFunc(out, func(a, b StoredItem) int {
		if a.Kind != b.Kind {
			return strings.Compare(string(a.Kind), string(b.Kind))
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

// RemoveStored deletes an item of Stored. It returns Conflict for an item that something needs by now, Invalid for one
// of a kind that it does not delete, and NotFound.
func (s *Service) RemoveStored(ctx context.Context, item StoredItem) error {
	if item.Kind == StoredJobs && item.Job != "" {
		_, err := s.Forget(ctx, string(item.Job))
		return err
	}
	if strings.Contains(item.Name, "/") || item.Name == "" || item.Name == "." || item.Name == ".." { // it is part of a path
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "delete an item", Msg: fmt.Sprintf("%.40q is no item's name", item.Name),
			Hint: "disdel du lists the items",
		}
	}
	models, err := s.Models(ctx)
	if err != nil {
		return err
	}
	needs, err := s.needs(ctx)
	if err != nil {
		return err
	}
	list, _ := models.List(ctx)
	if why := needs.reason(&item, list); why != "" {
		return &disdel.Error{
			Kind: disdel.Conflict, Op: "delete " + item.Name, Msg: why, Hint: "disdel du shows what nothing needs",
		}
	}
	switch item.Kind {
	case StoredData:
		if job := s.Reader(ctx, item.Name); job != "" {
			return &disdel.Error{
				Kind: disdel.Conflict, Op: "delete " + item.Name, Msg: fmt.Sprintf("%s is reading it", job),
				Hint: "wait for the job, or cancel it: disdel jobs cancel " + string(job),
			}
		}
		data, err := s.Datasets(ctx)
		if err == nil {
			_, err = data.Remove(ctx, item.Name)
		}
		return err
	case StoredModels:
		_, err = models.Remove(ctx, item.Name)
		return err
	case StoredCheckpoints:
		if err := models.Discard(ctx, path.Join("checkpoints", item.Name)); err != nil {
			return err
		}
		return s.discardWeights(ctx, models, list, item.Name)
	case StoredWeights:
		return models.RemoveWeights(ctx, item.Name)
	case StoredPrograms:
		return models.RemoveProgram(ctx, item.Name)
	case StoredAnswers:
		return models.DiscardAnswers(ctx, path.Join("answers", item.Name))
	case StoredLogs:
		if s.whose() != "" {
			return &disdel.Error{Kind: disdel.NotFound, Op: "delete the log", Msg: "a tenant has none"}
		}
		if err := os.Remove(local.Log(s.cfg.Home)); err != nil {
			return &disdel.Error{Kind: disdel.Unavailable, Op: "delete the log", Err: files.Plain(err)}
		}
		return nil
	default:
		return &disdel.Error{Kind: disdel.Invalid, Op: "delete " + item.Name, Msg: "it is no item that can be deleted"}
	}
}

// discardWeights deletes the weights that an ended job has left beside the models.
func (s *Service) discardWeights(ctx context.Context, models *modelstore.Store, list []modelstore.Model, job string) error {
	h, err := s.History(ctx)
	if err != nil {
		return err
	}
	r, err := h.Get(ctx, disdel.JobID(job))
	if err != nil || r.Status != disdel.StatusFailed && r.Status != disdel.StatusCanceled {
		return nil //nolint:nilerr // nobody knows whose weights these are
	}
	key := modelstore.WeightsPath(r.Job.Output.Model, r.ID)
	if slices.ContainsFunc(list, func(m modelstore.Model) bool { return m.Path == key }) {
		return nil
	}
	return models.DiscardFile(ctx, key)
}

// storedList adds up the sizes of files by the item that they belong to.
type storedList struct {
	items map[StoredItem]*StoredItem // by kind and name
}

func (l *storedList) add(kind StoredKind, name string, size int64, written time.Time) {
	key := StoredItem{Kind: kind, Name: name}
	if l.items[key] == nil {
		l.items[key] = &StoredItem{Kind: kind, Name: name}
	}
	item := l.items[key]
	item.Size += disdel.Bytes(size)
	if written.After(item.Written) {
		item.Written = written
	}
}

// addBucket adds the keys of a bucket. itemOf says to which item a key belongs.
func (l *storedList) addBucket(ctx context.Context, url string, itemOf func(key string) (StoredKind, string)) error {
	bucket, err := blobs.Open(ctx, url)
	if err != nil {
		return err
	}
	for o, err := range bucket.List(ctx, "") {
		if err != nil {
			return blobs.Wrap(err, "list files", url)
		}
		kind, name := itemOf(o.Key)
		l.add(kind, name, o.Size, o.Written)
	}
	return nil
}

// addHistory adds the records, and for the home also the platform's log. A tenant's records are in the home's file.
func (l *storedList) addHistory(ctx context.Context, s *Service) error {
	if s.whose() == "" {
		l.addFile(StoredLogs, local.Log(s.cfg.Home))
		l.addFile(StoredJobs, local.HistoryFile(s.cfg.Home))
		return nil
	}
	size, err := s.recordBytes(ctx)
	if err == nil && size > 0 {
		l.add(StoredJobs, "records", int64(size), time.Time{})
	}
	return err
}

func (l *storedList) addFile(kind StoredKind, file string) {
	if info, err := os.Stat(file); err == nil {
		l.add(kind, path.Base(file), info.Size(), info.ModTime())
	}
}

func dataItem(key string) (StoredKind, string) {
	name, _, _ := strings.Cut(key, "/")
	return StoredData, name
}

// endedJobs returns a function that tells whether a job has failed or was canceled, so that no model has its weights.
func (s *Service) endedJobs(ctx context.Context) (func(job string) bool, error) {
	h, err := s.History(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	return func(job string) bool {
		ended, ok := known[job]
		if !ok {
			r, err := h.Get(ctx, disdel.JobID(job))
			ended = err == nil && (r.Status == disdel.StatusFailed || r.Status == disdel.StatusCanceled)
			known[job] = ended
		}
		return ended
	}, nil
}

// modelItems returns a function that says to which item a key of the storage of models belongs. Weights that an ended
// job has left are among its checkpoints.
func modelItems(list []modelstore.Model, ended func(job string) bool) func(key string) (StoredKind, string) {
	weights := map[string]string{}
	for i := range list {
		weights[list[i].Path] = list[i].Ref()
	}
	return func(key string) (StoredKind, string) {
		folder, rest, _ := strings.Cut(key, "/")
		first, file, _ := strings.Cut(rest, "/")
		switch folder {
		case "checkpoints":
			return StoredCheckpoints, first
		case "answers":
			return StoredAnswers, first
		case "given":
			return StoredWeights, "sha256:" + strings.TrimSuffix(first, ".safetensors")
		case "code":
			return StoredPrograms, "sha256:" + strings.TrimSuffix(first, ".zip")
		case "weights":
			job := strings.TrimSuffix(file, ".safetensors")
			if ref, ok := weights[key]; ok {
				return StoredModels, ref
			} else if job != file && ended(job) {
				return StoredCheckpoints, job
			}
		case "models":
			var version int
			if n, _ := fmt.Sscanf(file, "v%d.json", &version); n == 1 {
				return StoredModels, fmt.Sprintf("%s:v%d", first, version)
			}
		}
		return StoredOther, folder
	}
}

// storedNeeds is what the unfinished jobs of a history need.
type storedNeeds struct {
	jobs     map[disdel.JobID]disdel.Status
	data     map[string]disdel.JobID
	weights  map[string]disdel.JobID // by the reference of the job file
	programs map[string]string       // by the digest of the code: which job needs it, also if it has failed
	known    func(job disdel.JobID) bool
	ownFiles bool // the storage belongs to this home only
	platform bool // a platform runs in this home
	waiting  map[string]bool
}

// UnfinishedStatuses are the states of jobs that still need their data set, checkpoints and initial weights.
var UnfinishedStatuses = []disdel.Status{
	disdel.StatusQueued, disdel.StatusAdmitted, disdel.StatusRunning, disdel.StatusPaused,
}

// needs reads the unfinished jobs of the history.
func (s *Service) needs(ctx context.Context) (n storedNeeds, err error) {
	n = storedNeeds{
		jobs: map[disdel.JobID]disdel.Status{}, data: map[string]disdel.JobID{}, weights: map[string]disdel.JobID{},
		programs: map[string]string{}, waiting: map[string]bool{}, ownFiles: s.cfg.Storage == "",
	}
	_, n.platform = local.Find(s.cfg.Home)
	h, err := s.History(ctx)
	if err != nil {
		return n, err
	}
	n.known = func(job disdel.JobID) bool {
		_, err := h.Get(ctx, job)
		return disdel.KindOf(err) != disdel.NotFound
	}
	models, err := s.Models(ctx)
	if err != nil {
		return n, err
	}
	statuses := UnfinishedStatuses
	if models.HasPrograms(ctx) {
		statuses = slices.Concat(statuses, []disdel.Status{disdel.StatusFailed, disdel.StatusCanceled})
	}
	for _, status := range statuses {
		if err := n.add(ctx, h, status); err != nil {
			return n, err
		}
	}
	questions, _ := models.PendingQuestions(ctx, func(string) bool { return false })
	for _, q := range questions {
		n.waiting[q.Name] = true
	}
	return n, nil
}

func (n *storedNeeds) add(ctx context.Context, h *history.Store, status disdel.Status) error {
	for q := (history.Query{Status: status, Limit: history.DefaultLimit}); ; {
		list, err := h.List(ctx, q)
		if err != nil {
			return err
		}
		for i := range list {
			r := &list[i]
			if p := r.Job.Model.Python; p != nil {
				n.programs[p.Code] = fmt.Sprintf("the %s job %s needs it", r.Status, r.ID)
			}
			if !slices.Contains(UnfinishedStatuses, r.Status) {
				continue
			}
			n.jobs[r.ID] = r.Status
			n.data[strings.TrimPrefix(r.Job.Data.Source, "dataset://")] = r.ID
			n.weights[r.Job.Model.Init.Weights] = r.ID
		}
		if len(list) < q.Limit {
			return nil
		}
		q.Before = list[len(list)-1].ID
	}
}

// reason says why an item must stay; empty: nothing needs it.
func (n *storedNeeds) reason(item *StoredItem, models []modelstore.Model) string {
	switch item.Kind {
	case StoredData:
		if job, ok := n.data[item.Name]; ok {
			return fmt.Sprintf("the %s job %s needs it", n.jobs[job], job)
		}
		for i := range models {
			if models[i].Data.Name == item.Name {
				return "the model " + models[i].Ref() + " was trained on it"
			}
		}
	case StoredModels:
		return n.modelReason(item.Name, models)
	case StoredCheckpoints:
		job := disdel.JobID(item.Name)
		if status, ok := n.jobs[job]; ok {
			return fmt.Sprintf("its job is %s", status)
		}
		if !n.ownFiles && !n.known(job) {
			return "its job is in the history of another home"
		}
	case StoredWeights:
		if job, ok := n.weights[item.Name]; ok {
			return fmt.Sprintf("the %s job %s starts from it", n.jobs[job], job)
		}
	case StoredPrograms:
		return n.programReason(item.Name, models)
	case StoredAnswers:
		if n.waiting[item.Name] {
			return "a query writes them"
		}
	case StoredLogs:
		if n.platform {
			return "the platform of this home runs"
		}
	case StoredJobs:
		return "disdel prune jobs --older TIME deletes single records"
	default:
		return "it is no item that can be deleted"
	}
	return ""
}

// programReason keeps the code of models, and of jobs that run or may be resumed.
func (n *storedNeeds) programReason(code string, models []modelstore.Model) string {
	for i := range models {
		if c := models[i].Network.Custom; c != nil && c.Python != nil && c.Python.Code == code {
			return "the model " + models[i].Ref() + " needs it"
		}
	}
	if why, ok := n.programs[code]; ok {
		return why
	}
	if !n.ownFiles {
		return "a job of another home may need it"
	}
	return ""
}

// modelReason keeps the versions that a name means: the newest, the best and those with tags.
func (n *storedNeeds) modelReason(ref string, models []modelstore.Model) string {
	if job, ok := n.weights[ref]; ok {
		return fmt.Sprintf("the %s job %s starts from it", n.jobs[job], job)
	}
	name, _, _ := strings.Cut(ref, ":")
	var own []modelstore.Model
	for i := range models {
		if models[i].Name == name {
			own = append(own, models[i])
		}
	}
	best, _ := modelstore.Best(own)
	newest, learned := 0, 0
	for i := range own {
		newest = max(newest, own[i].Version)
		if m := &own[i]; m.Learned == nil || *m.Learned {
			learned = max(learned, m.Version)
		}
	}
	for i := range own {
		m := &own[i]
		switch {
		case m.Ref() != ref:
		case len(m.Tags) > 0:
			return "it is " + strings.Join(m.Tags, " and ")
		case m.Version == best.Version:
			return "it is the best version"
		case m.Version == newest, m.Version == learned:
			return "it is the newest version"
		default:
			return ""
		}
	}
	return "its description cannot be read"
}
