package service

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/platform/local"
	"github.com/disdel/disdel/service/lease"
	"github.com/disdel/disdel/service/tenant"
)

// StoredKind is the kind of something that takes space in a home or on its storage.
type StoredKind string

// The kinds of stored items.
const (
	StoredData         StoredKind = "data"         // data sets
	StoredModels       StoredKind = "models"       // versions of trained models
	StoredCheckpoints  StoredKind = "checkpoints"  // of one job each
	StoredWeights      StoredKind = "weights"      // files that were sent with jobs, kept for the next one
	StoredPrograms     StoredKind = "programs"     // code of Python programs
	StoredEnvironments StoredKind = "environments" // virtual environments of Python programs
	StoredAnswers      StoredKind = "answers"      // that infer --dataset kept
	StoredLogs         StoredKind = "logs"         // of the platform in the background
	StoredJobs         StoredKind = "jobs"         // records of jobs, in one file
	StoredOther        StoredKind = "other"        // everything else beside data sets and models
)

// StoredItem is something that takes space in a home or on its storage.
type StoredItem struct {
	Kind    StoredKind   `json:"kind"`
	Tenant  string       `json:"tenant,omitempty"` // the owner; empty: the tenant or the home that asks
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
	known := &modelList{}
	list, unread := known.of(ctx, models) // a version that cannot be read is among the other files
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
	needs, err := s.needs(ctx, unread)
	if err != nil {
		return nil, err
	}
	var out []StoredItem
	for _, item := range l.items {
		item.Kept = needs.reason(item, known)
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
	return s.removeStored(ctx, item, &modelList{})
}

// RemoveAllStored deletes items as RemoveStored does, up to the first error. Items that are gone are no error. It
// returns the number of items that are gone.
//
// It lists the models once for versions, jobs or checkpoints in a row: what these depend on is also read for each.
// Other items may be needed by a model that is made meanwhile, so it lists the models again for each.
func (s *Service) RemoveAllStored(ctx context.Context, items []StoredItem) (gone int, err error) {
	var list *modelList
	for i, item := range items {
		if i == 0 || item.Kind != items[i-1].Kind ||
			!slices.Contains([]StoredKind{StoredModels, StoredJobs, StoredCheckpoints}, item.Kind) {
			list = &modelList{}
		}
		if err := s.removeStored(ctx, item, list); err != nil && disdel.KindOf(err) != disdel.NotFound {
			return i, err
		}
	}
	return len(items), nil
}

// modelList is all models, which are read once for many items: with as many models as items that is most of the work.
type modelList struct {
	read    bool
	models  []modelstore.Model
	unread  error
	reasons map[string]string // why versions stay
}

func (l *modelList) of(ctx context.Context, store *modelstore.Store) ([]modelstore.Model, error) {
	if !l.read {
		l.models, l.unread = store.List(ctx)
		l.read = true
	}
	return l.models, l.unread
}

func (s *Service) removeStored(ctx context.Context, item StoredItem, known *modelList) error {
	if item.Kind == StoredJobs && item.Job != "" {
		_, err := s.forget(ctx, string(item.Job), known)
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
	_, unread := known.of(ctx, models)
	needs, err := s.needs(ctx, unread)
	if err != nil {
		return err
	}
	if why := needs.reason(&item, known); why != "" {
		return &disdel.Error{
			Kind: disdel.Conflict, Op: "delete " + item.Name, Msg: why, Hint: "disdel du shows what nothing needs",
		}
	}
	switch item.Kind {
	case StoredData:
		_, err = s.RemoveDataset(ctx, item.Name)
		return err
	case StoredModels:
		_, err = models.Remove(ctx, item.Name)
		return err
	case StoredCheckpoints:
		rec := disdel.Record{ID: disdel.JobID(item.Name)}
		if h, err := s.History(ctx); err != nil {
			return err
		} else if read, err := h.Get(ctx, rec.ID); err == nil { // else nobody knows which weights are the job's
			rec = read
		}
		return discardCheckpoints(ctx, models, &rec, known)
	case StoredWeights:
		return models.RemoveWeights(ctx, item.Name)
	case StoredPrograms:
		return models.RemoveProgram(ctx, item.Name)
	case StoredEnvironments:
		return s.removeEnvironment(item.Name)
	case StoredAnswers:
		return models.DiscardAnswers(ctx, path.Join("answers", item.Name))
	case StoredLogs:
		if s.whose() != "" {
			return &disdel.Error{Kind: disdel.NotFound, Op: "delete the log", Msg: "a tenant has none"}
		}
		file := local.Log(s.cfg.Home)
		if item.Name != filepath.Base(file) {
			file = filepath.Join(s.cfg.Home, backgroundFolder, item.Name)
		}
		if err := os.Remove(file); err != nil {
			return &disdel.Error{Kind: disdel.Unavailable, Op: "delete the log", Err: files.Plain(err)}
		}
		return nil
	default:
		return &disdel.Error{Kind: disdel.Invalid, Op: "delete " + item.Name, Msg: "it is no item that can be deleted"}
	}
}

// discardCheckpoints deletes the checkpoints of an ended job, and the weights that it has left beside the models. If
// a model cannot be read, these weights may be the model's, and stay.
func discardCheckpoints(ctx context.Context, models *modelstore.Store, rec *disdel.Record, known *modelList) error {
	if err := models.Discard(ctx, controller.CheckpointFolder(rec.ID)); err != nil {
		return err
	}
	if rec.Status != disdel.StatusFailed && rec.Status != disdel.StatusCanceled {
		return nil
	}
	all, unread := known.of(ctx, models)
	key := modelstore.WeightsPath(rec.Job.Output.Model, rec.ID)
	if unread != nil || slices.ContainsFunc(all, func(m modelstore.Model) bool { return m.Path == key }) {
		return nil //nolint:nilerr // see above
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

// addHistory adds the records and environments, and for the home also the platform's log. A tenant's records are in the
// home's file.
func (l *storedList) addHistory(ctx context.Context, s *Service) error {
	l.addEnvironments(filepath.Join(s.pythonFolder(), "environments"))
	if s.whose() == "" {
		for name, pattern := range map[string]string{
			"audit log": tenant.AuditFile + "*", "records that the history did not take": "unsaved/*",
		} {
			l.addFiles(StoredOther, name, filepath.Join(s.cfg.Home, pattern))
		}
		l.addFiles(StoredLogs, "", filepath.Join(s.cfg.Home, backgroundFolder, "*.log"))
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

// addFiles adds the files of a pattern, as one item or under their own names.
func (l *storedList) addFiles(kind StoredKind, name, pattern string) {
	list, _ := filepath.Glob(pattern) // the pattern is well-formed
	for _, file := range list {
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			l.add(kind, cmp.Or(name, path.Base(file)), info.Size(), info.ModTime())
		}
	}
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

// storedNeeds is why the items of a home or of a tenant must stay.
type storedNeeds struct {
	jobs     map[disdel.JobID]string // whose checkpoints must stay
	data     map[string]string       // by name
	weights  map[string]string       // by the reference of the job file
	any      string                  // every data set, model and file of weights must stay; empty: they need not
	programs map[string]string       // by the digest of the code: which job needs it, also if it has failed
	// by the path of Python, as programs
	interpreters map[string]string
	unread       string // a record cannot be read, so its job may need any environment
	models       string // every data set must stay, because of models that cannot be read
	answers      string // all answers must stay
	record       func(job disdel.JobID) error
	ownFiles     bool // the storage belongs to this home only
	platform     bool // a platform runs in this home
	waiting      map[string]bool
}

// UnfinishedStatuses are the states of jobs that still need their data set, checkpoints and initial weights.
var UnfinishedStatuses = []disdel.Status{
	disdel.StatusQueued, disdel.StatusAdmitted, disdel.StatusRunning, disdel.StatusPaused,
}

// needs reads the unfinished jobs of the history, also those of other tenants: they may read what this one shares.
// unread is the error of models whose descriptions cannot be read.
func (s *Service) needs(ctx context.Context, unread error) (n storedNeeds, err error) {
	n = storedNeeds{
		jobs: map[disdel.JobID]string{}, data: map[string]string{}, weights: map[string]string{},
		programs: map[string]string{}, interpreters: map[string]string{},
		waiting: map[string]bool{}, ownFiles: s.cfg.Storage == "",
	}
	if unread != nil {
		n.models = "the description of a model cannot be read, and the model may have been trained on it"
	}
	if !n.ownFiles {
		n.any = "other homes may use the storage and need it"
	}
	_, n.platform = local.Find(s.cfg.Home)
	h, err := s.historyOfAll(ctx)
	if err != nil {
		return n, err
	}
	n.record = func(job disdel.JobID) error {
		_, err := h.Get(ctx, job)
		return err
	}
	models, err := s.Models(ctx)
	if err != nil {
		return n, err
	}
	if err := s.addStatuses(ctx, &n, h, models.HasPrograms(ctx)); err != nil {
		return n, err
	}
	if err := s.addRunning(ctx, &n, h); err != nil { // after the statuses, which change meanwhile
		return n, err
	}
	questions, err := models.PendingQuestions(ctx, func(string) bool { return false })
	if err != nil {
		n.answers = "a note of a query cannot be read"
	}
	for _, q := range questions {
		n.waiting[q.Name] = true
	}
	return n, nil
}

// addStatuses adds the needs of unfinished jobs, and the programs of jobs that can be resumed.
func (s *Service) addStatuses(ctx context.Context, n *storedNeeds, h *history.Store, programs bool) error {
	statuses := UnfinishedStatuses
	if programs {
		statuses = slices.Concat(statuses, []disdel.Status{disdel.StatusFailed, disdel.StatusCanceled})
	}
	for _, status := range statuses {
		if err := s.addUnfinished(ctx, n, h, status); err != nil {
			return err
		}
	}
	return nil
}

// addProgram adds the program of a job.
func (n *storedNeeds) addProgram(r *disdel.Record) {
	if p := r.Job.Model.Python; p != nil {
		n.programs[p.Code] = fmt.Sprintf("the %s job %s needs it", r.Status, r.ID)
		n.interpreters[p.Interpreter] = n.programs[p.Code]
	}
}

// addUnfinished adds the needs of the jobs with a status.
func (s *Service) addUnfinished(ctx context.Context, n *storedNeeds, h *history.Store, status disdel.Status) error {
	q := history.Query{Status: status, Limit: history.DefaultLimit, Unreadable: n.addUnread}
	for {
		list, err := h.List(ctx, q)
		if err != nil {
			return err
		}
		for i := range list {
			r := &list[i]
			if slices.Contains(UnfinishedStatuses, r.Status) {
				s.addJob(n, r)
			}
			n.addProgram(r)
		}
		if len(list) < q.Limit {
			return nil
		}
		q.Before = list[len(list)-1].ID
	}
}

// addRunning adds the needs of the jobs that processes run now, whatever their records say.
func (s *Service) addRunning(ctx context.Context, n *storedNeeds, h *history.Store) error {
	running := lease.MarkedJobs(s.cfg.Home)
	leases, err := h.Leases(ctx)
	if err != nil {
		return err
	}
	for _, l := range leases {
		if lives, err := lease.Alive(ctx, h, l); lives || err != nil {
			running = append(running, l.Job)
		}
	}
	for _, id := range running {
		r, err := h.Get(ctx, id)
		switch {
		case err == nil:
			s.addJob(n, &r)
			n.addProgram(&r)
		case disdel.KindOf(err) == disdel.NotFound:
			n.unread = "a job starts now, and may need it"
			n.any = cmp.Or(n.any, n.unread)
		case disdel.AsError(err).Code == disdel.CodeUnreadable:
			n.addUnread(id)
		default:
			return err
		}
		n.jobs[id] = cmp.Or(n.jobs[id], "a process runs its job")
	}
	return nil
}

// addJob adds the needs of one job.
func (s *Service) addJob(n *storedNeeds, r *disdel.Record) {
	job := fmt.Sprintf("the %s job %s", r.Status, r.ID)
	if s.whose() != "" && r.Tenant != s.whose() {
		job = fmt.Sprintf("a %s job of %s", r.Status, cmp.Or(r.Tenant, "the server's operator"))
	}
	n.jobs[r.ID] = fmt.Sprintf("its job is %s", r.Status)
	for _, ref := range []string{strings.TrimPrefix(r.Job.Data.Source, "dataset://"), r.Data.Name} {
		if name, own := s.ownName(ref, r.Tenant); own {
			n.data[name] = job + " needs it"
		}
	}
	if ref, own := s.ownName(r.Job.Model.Init.Weights, r.Tenant); own {
		n.weights[ref] = job + " starts from it"
	}
}

// addUnread adds the needs of a job whose record cannot be read: they are not known.
func (n *storedNeeds) addUnread(id disdel.JobID) {
	n.jobs[id] = "the record of its job cannot be read"
	n.unread = fmt.Sprintf("the record of the job %s cannot be read, and the job may need it", id)
	n.any = cmp.Or(n.any, n.unread)
}

// ownName returns the plain name of NAME or OWNER/NAME in a job of a tenant. own tells whether this Service's tenant
// owns the item.
func (s *Service) ownName(ref, usual string) (name string, own bool) {
	owner, name, named := strings.Cut(ref, "/")
	if !named || strings.HasPrefix(ref, "sha256:") {
		owner, name = cmp.Or(usual, tenant.HomeOwner), ref
	}
	return name, name != "" && owner == s.owner()
}

// reason says why an item must stay; empty: nothing needs it.
func (n *storedNeeds) reason(item *StoredItem, known *modelList) string {
	models := known.models
	switch item.Kind {
	case StoredData:
		if why := cmp.Or(n.data[item.Name], n.any, n.models); why != "" {
			return why
		}
		for i := range models {
			if models[i].Data.Name == item.Name {
				return "the model " + models[i].Ref() + " was trained on it"
			}
		}
	case StoredModels:
		return cmp.Or(n.weights[item.Name], known.reason(item.Name), n.any)
	case StoredCheckpoints:
		return n.checkpointReason(disdel.JobID(item.Name))
	case StoredWeights:
		return cmp.Or(n.weights[item.Name], n.any)
	case StoredPrograms:
		return n.programReason(item.Name, models)
	case StoredEnvironments:
		return n.environmentReason(item, models)
	case StoredAnswers:
		if n.waiting[item.Name] {
			return "a query writes them"
		}
		return n.answers
	case StoredLogs:
		return n.logReason(item)
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
	return cmp.Or(n.any, n.models)
}

// backgroundFolder has the logs of jobs in the background, by their ids. A job that ends removes its log.
const backgroundFolder = "background"

// startsWithin is how long a job in the background may take until it has an id.
const startsWithin = time.Hour

// logReason keeps the logs of running jobs and platforms.
func (n *storedNeeds) logReason(item *StoredItem) string {
	id, platformLog := disdel.JobID(strings.TrimSuffix(item.Name, ".log")), filepath.Base(local.Log(""))
	switch {
	case id.Valid():
		return n.jobs[id]
	case item.Name == platformLog:
		if n.platform {
			return "the platform of this home runs"
		}
	case time.Since(item.Written) < startsWithin:
		return "a job may be starting"
	}
	return ""
}

// checkpointReason keeps the checkpoints of jobs that may go on.
func (n *storedNeeds) checkpointReason(job disdel.JobID) string {
	if why := n.jobs[job]; why != "" {
		return why
	}
	err := n.record(job)
	switch {
	case disdel.KindOf(err) == disdel.NotFound && !n.ownFiles:
		return "its job is in the history of another home"
	case err != nil && disdel.KindOf(err) != disdel.NotFound:
		return "the record of its job cannot be read"
	}
	return ""
}

// reason says why a version must stay; empty: nothing needs it.
func (l *modelList) reason(ref string) string {
	if l.reasons == nil {
		l.reasons = map[string]string{}
		byName := map[string][]modelstore.Model{}
		for i := range l.models {
			byName[l.models[i].Name] = append(byName[l.models[i].Name], l.models[i])
		}
		for _, versions := range byName {
			l.addReasons(versions)
		}
	}
	if why, there := l.reasons[ref]; there {
		return why
	}
	return "its description cannot be read"
}

// addReasons keeps the versions that a name means: the newest, the best and those with tags.
func (l *modelList) addReasons(versions []modelstore.Model) {
	best, _ := modelstore.Best(versions)
	newest, learned := 0, 0
	for i := range versions {
		newest = max(newest, versions[i].Version)
		if m := &versions[i]; m.Learned == nil || *m.Learned {
			learned = max(learned, m.Version)
		}
	}
	for i := range versions {
		m, why := &versions[i], ""
		switch {
		case len(m.Tags) > 0:
			why = "it is " + strings.Join(m.Tags, " and ")
		case m.Version == best.Version:
			why = "it is the best version"
		case m.Version == newest, m.Version == learned:
			why = "it is the newest version"
		}
		l.reasons[m.Ref()] = why
	}
}
