package service_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/test/race"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/infer"
	"github.com/disdel/disdel/service/tenant"
)

// people are a Service with the tenants ann, bob and cleo.
func people(t *testing.T) (*service.Service, []string) {
	t.Helper()
	s, err := service.Open(t.Context(), service.Config{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	names := []string{"ann", "bob", "cleo"}
	for _, name := range names {
		if _, err := s.Tenants().Create(t.Context(), name, tenant.RoleSubmit, nil); err != nil {
			t.Fatal(err)
		}
	}
	return s, names
}

// rules is what shares mean, as the documentation says it: item by owner and name, and who may read it.
type rules map[tenant.Item]*rule

type rule struct {
	with map[string]bool
	all  bool
}

func (r rules) mayRead(viewer string, item tenant.Item) bool {
	one := r[item]
	return one != nil && (viewer == item.Owner || one.all || one.with[viewer])
}

// shop is the items of people, real ones: small data sets, models, and jobs that have ended.
type shop struct {
	t     *testing.T
	s     *service.Service
	jobs  int
	rules rules
}

// add makes an item. Of a job it draws the id.
func (s *shop) add(item tenant.Item) tenant.Item {
	s.t.Helper()
	ctx, view := s.t.Context(), s.s.Tenant(item.Owner)
	var err error
	switch item.Kind {
	case tenant.ItemDataset:
		var store *dataset.Store
		if store, err = view.Datasets(ctx); err == nil {
			_, err = store.Add(ctx, dataset.Input{Name: item.Name, Train: dataset.Samples{
				Shape: []int{1, 1, 2}, U8: []byte{1, 2, 3, 4}, Labels: []int32{0, 1},
			}}, false)
		}
	case tenant.ItemModel:
		var store *modelstore.Store
		if store, err = view.Models(ctx); err == nil {
			ref := disdel.ModelRef{Name: item.Name, Path: modelstore.WeightsPath(item.Name, "job-1")}
			ref.Checksum, ref.Size, err = store.WriteWeights(ctx, ref.Path, nil, nil, modelstore.ArrayValues(0, nil))
			if err != nil {
				s.t.Fatal(err)
			}
			network := disdel.Network{Name: "lenet5", Input: []int{1, 28, 28}, Classes: 10}
			_, err = store.Commit(ctx, modelstore.Model{ModelRef: ref, Network: network})
		}
	case tenant.ItemJob:
		s.jobs++
		item.Name = fmt.Sprintf("job-%026d", s.jobs)
		rec := disdel.Record{
			APIVersion: disdel.APIVersion, ID: disdel.JobID(item.Name), Status: disdel.StatusSucceeded, Created: time.Now(),
			Tenant: item.Owner,
		}
		var h *history.Store
		if h, err = view.History(ctx); err == nil {
			err = h.Save(ctx, &rec)
		}
	}
	if err != nil {
		s.t.Fatalf("add %v: %v", item, err)
	}
	s.rules[item] = &rule{with: map[string]bool{}}
	return item
}

// remove deletes an item as somebody, by a name.
func (s *shop) remove(viewer string, kind tenant.ItemKind, name string) error {
	at := client.Local(s.s.Tenant(viewer))
	var err error
	switch kind {
	case tenant.ItemDataset:
		_, err = at.Data.Remove(s.t.Context(), name)
	case tenant.ItemModel:
		ref := name + ":v1"
		if m, fault := at.Models.Get(s.t.Context(), name); fault == nil {
			ref = m.Ref() // versions count up
		}
		_, err = at.Models.Remove(s.t.Context(), ref)
	case tenant.ItemJob:
		err = at.Records.Forget(s.t.Context(), disdel.JobID(name))
	}
	return err
}

// list is what somebody sees in the list of a kind, as OWNER/NAME.
func (s *shop) list(viewer string, kind tenant.ItemKind) (out []string) {
	s.t.Helper()
	at := client.Local(s.s.Tenant(viewer))
	var err error
	full := func(name string) string {
		if strings.Contains(name, "/") {
			return name
		}
		return viewer + "/" + name
	}
	switch kind {
	case tenant.ItemDataset:
		sets, fault := at.Data.List(s.t.Context())
		for i := range sets {
			out, err = append(out, full(sets[i].Name)), fault
		}
	case tenant.ItemModel:
		models, fault := at.Models.List(s.t.Context())
		for i := range models {
			out, err = append(out, full(models[i].Name)), fault
		}
	case tenant.ItemJob:
		jobs, fault := at.Records.List(s.t.Context(), history.Query{Limit: 1000})
		for i := range jobs {
			out, err = append(out, jobs[i].Tenant+"/"+string(jobs[i].ID)), fault
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// sees reports whether somebody can read one item by its name.
func (s *shop) sees(viewer string, item tenant.Item) (bool, error) {
	at := client.Local(s.s.Tenant(viewer))
	name := item.Owner + "/" + item.Name
	if viewer == item.Owner {
		name = item.Name
	}
	var err error
	switch item.Kind {
	case tenant.ItemDataset:
		_, err = at.Data.Get(s.t.Context(), name)
	case tenant.ItemModel:
		_, err = at.Models.Get(s.t.Context(), name)
	case tenant.ItemJob:
		_, err = s.s.Tenant(viewer).Look(s.t.Context(), item.Name)
	}
	if disdel.KindOf(err) == disdel.NotFound {
		return false, nil
	}
	return err == nil, err
}

// check compares what everybody sees with the rules.
func (s *shop) check(people []string, known []tenant.Item, what string) {
	s.t.Helper()
	for _, viewer := range people {
		want := map[tenant.ItemKind][]string{}
		for _, item := range known {
			may := s.rules.mayRead(viewer, item)
			if sees, err := s.sees(viewer, item); err != nil || sees != may {
				s.t.Fatalf("%s: %s sees %v: %v, %v; want %v", what, viewer, item, sees, err, may)
			}
			if may {
				want[item.Kind] = append(want[item.Kind], item.Owner+"/"+item.Name)
			}
		}
		for _, kind := range []tenant.ItemKind{tenant.ItemDataset, tenant.ItemModel, tenant.ItemJob} {
			slices.Sort(want[kind])
			if got := s.list(viewer, kind); !slices.Equal(got, want[kind]) {
				s.t.Fatalf("%s: %s lists %s %v, want %v", what, viewer, kind, got, want[kind])
			}
		}
	}
}

// Everybody sees their own items and those that are shared with them, in lists and by name, and nothing else. Nobody
// deletes what is another's. An item that is deleted and made again is shared with nobody. The order of shares, their
// ends and deletions is drawn.
func TestEverybodySeesWhatIsSharedAndNothingElse(t *testing.T) {
	race.SkipSequential(t)
	s, people := people(t)
	shop := &shop{t: t, s: s, rules: rules{}}
	rng := rand.New(rand.NewPCG(33, 4))
	var known []tenant.Item
	for _, owner := range people {
		for _, kind := range []tenant.ItemKind{tenant.ItemDataset, tenant.ItemModel, tenant.ItemJob} {
			known = append(known, shop.add(tenant.Item{Kind: kind, Owner: owner, Name: "small"}))
		}
	}
	ctx := t.Context()
	for step := range 60 {
		i := rng.IntN(len(known))
		item := known[i]
		own := s.Tenant(item.Owner)
		with := slices.DeleteFunc(slices.Clone(people), func(name string) bool {
			return name == item.Owner || rng.IntN(2) == 0
		})
		all := rng.IntN(4) == 0
		what := fmt.Sprintf("step %d, %v", step, item)
		switch rule := shop.rules[item]; rng.IntN(5) {
		case 0, 1:
			if len(with) == 0 && !all {
				continue
			}
			if _, err := own.Share(ctx, item.Kind, item.Name, with, all); err != nil {
				t.Fatal(err)
			}
			for _, name := range with {
				rule.with[name] = true
			}
			rule.all = rule.all || all
			what += fmt.Sprintf(" shared with %v, all %v", with, all)
		case 2:
			share, err := own.Unshare(ctx, item.Kind, item.Name, with, all)
			switch {
			case rule.all && !all && len(with) > 0:
				if disdel.KindOf(err) != disdel.Conflict {
					t.Fatalf("%s: %v", what, err)
				}
			case err != nil:
				t.Fatal(err)
			case len(with) == 0 && !all:
				rule.with, rule.all = map[string]bool{}, false
			default:
				maps.DeleteFunc(rule.with, func(name string, _ bool) bool { return slices.Contains(with, name) })
				rule.all = rule.all && !all
			}
			if err == nil && (share.All != rule.all || len(share.With) != len(rule.with)) {
				t.Fatalf("%s: %+v, want %+v", what, share, rule)
			}
			what += fmt.Sprintf(" unshared from %v, all %v", with, all)
		case 3:
			for _, viewer := range people {
				if viewer == item.Owner {
					continue
				}
				name := item.Owner + "/" + item.Name
				if item.Kind == tenant.ItemJob {
					name = item.Name
				}
				err := shop.remove(viewer, item.Kind, name)
				if kind := disdel.KindOf(err); kind != disdel.Denied && kind != disdel.NotFound {
					t.Fatalf("%s: %s removes it: %v", what, viewer, err)
				}
			}
			what += " that others try to remove"
		default:
			if err := shop.remove(item.Owner, item.Kind, item.Name); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			delete(shop.rules, item)
			shop.check(people, known, what+" removed")
			if item.Kind == tenant.ItemJob {
				known = slices.Delete(known, i, i+1)
				item.Name = ""
				known = append(known, shop.add(item))
			} else {
				shop.add(item)
			}
			what += " removed and made again"
		}
		shop.check(people, known, what)
	}
}

// A model that is not found is told with its owner, whoever names it, and with the tenant that shares one of that name.
// Nobody learns what others do not share.
func TestAnUnknownModelIsToldWithItsOwner(t *testing.T) {
	t.Parallel()
	s, _ := people(t)
	ctx := t.Context()
	ann, bob := s.Tenant("ann"), s.Tenant("bob")
	if err := bob.AddDigits(ctx); err != nil {
		t.Fatal(err)
	}
	all := &shop{t, s, 0, rules{}}
	for _, name := range []string{"shared", "private"} {
		all.add(tenant.Item{Kind: tenant.ItemModel, Owner: "ann", Name: name})
	}
	if _, err := ann.Share(ctx, tenant.ItemModel, "shared", []string{"bob"}, false); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{
		"ann/shared:v7":  "models of ann: there is no shared:v7 yet, only v1",
		"shared":         "write ann/shared: ann shares",
		"shared:best":    "write ann/shared:best: ann shares",
		"private":        `no trained model "private"; disdel model list`,
		"nothing":        `no trained model "nothing"; disdel model list`,
		"ann/private":    `ann shares no model "private" with you; ask`,
		"ann/nothing":    `ann shares no model "nothing" with you; ask`,
		"ann/private:v7": `ann shares no model "private:v7" with you; ask`,
	} {
		_, err := bob.FindModel(ctx, ref)
		if e := disdel.AsError(err); !strings.Contains(e.Msg+"; "+e.Hint, want) {
			t.Errorf("find %s: %v; %s, want %q", ref, err, e.Hint, want)
		}
		_, err = bob.Submit(ctx, service.Request{Job: job("model.init.weights=" + ref)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("submit %s: %v, want %q", ref, err, want)
		}
	}
}

// A tenant trains on a data set of another, who cannot remove it meanwhile; a third one asks the model and reads the
// job, as far as each is shared.
func TestSharedDataModelAndJobAreUsed(t *testing.T) {
	t.Parallel()
	s, _ := people(t)
	ctx := t.Context()
	ann, bob, cleo := s.Tenant("ann"), s.Tenant("bob"), s.Tenant("cleo")
	if err := ann.AddDigits(ctx); err != nil {
		t.Fatal(err)
	}
	_, err := bob.Submit(ctx, service.Request{Job: job("data.source=dataset://ann/digits")})
	if err == nil || !strings.Contains(err.Error(), "ann/digits") || strings.Contains(err.Error(), "did you mean") {
		t.Fatalf("before it is shared: %v", err)
	}
	share := func(by *service.Service, kind tenant.ItemKind, name string, with ...string) {
		t.Helper()
		if _, err := by.Share(ctx, kind, name, with, len(with) == 0); err != nil {
			t.Fatal(err)
		}
	}
	share(ann, tenant.ItemDataset, "digits", "bob")
	long, err := bob.Submit(ctx, service.Request{
		Job: job("data.source=dataset://ann/digits", "training.epochs=1000", "training.batchSize=8"),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Local(ann).Data.Remove(ctx, "digits")
	if disdel.KindOf(err) != disdel.Conflict || !strings.Contains(err.Error(), "a job of bob") {
		t.Errorf("ann removes it under bob's job: %v", err)
	}
	share(bob, tenant.ItemJob, string(long.ID()), "cleo")
	watched, err := cleo.Watch(ctx, string(long.ID()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bob.Unshare(ctx, tenant.ItemJob, string(long.ID()), nil, false); err != nil {
		t.Fatal(err)
	}
	if _, err := watched.Wait(ctx); disdel.KindOf(err) != disdel.NotFound {
		t.Errorf("cleo goes on watching a job that is not shared any more: %v", err)
	}
	long.Cancel(context.Canceled)
	long.Wait(ctx) //nolint:errcheck // it was canceled

	run, err := bob.Submit(ctx, service.Request{Job: job("data.source=dataset://ann/digits")})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := run.Wait(ctx)
	if err != nil || rec.Status != disdel.StatusSucceeded || rec.Data.Name != "ann/digits" {
		t.Fatalf("%v of %s, %v: %v", rec.Status, rec.Data.Name, err, rec.Failure)
	}
	if m, err := bob.FindModel(ctx, rec.Model.Name); err != nil || m.Inputs == nil {
		t.Errorf("the model does not know the range of ann's data: %+v, %v", m.Inputs, err)
	}
	if _, err := cleo.Trained(ctx, "bob/"+rec.Model.Name); disdel.KindOf(err) != disdel.NotFound {
		t.Errorf("cleo asks bob's model: %v", err)
	}
	share(bob, tenant.ItemModel, rec.Model.Name)
	share(ann, tenant.ItemDataset, "digits", "cleo")
	m, err := cleo.Trained(ctx, "bob/"+rec.Model.Name)
	if err != nil {
		t.Fatal(err)
	}
	if m.Ref() != "bob/"+rec.Model.Name+":v1" {
		t.Errorf("the model is %s", m.Ref())
	}
	e, err := cleo.Evaluate(ctx, m, "ann/digits")
	if err != nil || e.Accuracy != rec.Accuracy || !e.HeldOut {
		t.Errorf("cleo measures accuracy %g of held-out rows %v, the job %g; %v", e.Accuracy, e.HeldOut, rec.Accuracy, err)
	}
	answers, err := cleo.InferData(ctx, m, infer.DataRequest{Dataset: "ann/digits", Part: disdel.PartTest}, nil)
	if err != nil || answers.Rows != e.Rows {
		t.Errorf("cleo has %d answers for %d rows, %v", answers.Rows, e.Rows, err)
	}
	var weights bytes.Buffer
	if err := client.Local(cleo).Models.CopyWeights(ctx, &weights, &m.Model); err != nil || weights.Len() == 0 {
		t.Errorf("cleo has %d bytes of weights, %v", weights.Len(), err)
	}
	tuned, err := cleo.Submit(ctx, service.Request{Job: job(
		"data.source=dataset://ann/digits", "model.init.weights=bob/"+rec.Model.Name, "training.epochs=1",
	)})
	if err != nil {
		t.Fatal(err)
	}
	if end, err := tuned.Wait(ctx); err != nil || end.Status != disdel.StatusSucceeded ||
		end.Job.Model.Init.Weights != "bob/"+rec.Model.Name+":v1" {
		t.Errorf("%v from %s, %v: %v", end.Status, end.Job.Model.Init.Weights, err, end.Failure)
	}
	share(bob, tenant.ItemJob, "digits", "cleo")
	for _, name := range []string{string(run.ID()), "bob/digits", string(run.ID())[:14]} {
		if seen, err := cleo.Look(ctx, name); err != nil || seen.ID != run.ID() {
			t.Errorf("cleo looks at %s: %s, %v", name, seen.ID, err)
		}
	}
	if err := cleo.RequestStop(ctx, "bob/digits", disdel.StatusCanceled, "cleo"); disdel.KindOf(err) != disdel.Denied {
		t.Errorf("cleo stops bob's job: %v", err)
	}
	if _, err := cleo.Resume(ctx, service.ResumeRequest{Job: string(run.ID())}); disdel.KindOf(err) != disdel.Denied {
		t.Errorf("cleo resumes bob's job: %v", err)
	}
}
