package tenant

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/history/couchlite"
	"github.com/disdel/disdel/scheduler"
)

// newRegistry is a registry of a new history, which a test also reads itself.
func newRegistry(t *testing.T) (*Registry, *history.Store) {
	t.Helper()
	server, err := couchlite.Open(filepath.Join(t.TempDir(), "history.db"), couchlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	h, err := history.Open(t.Context(), history.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	log := logrus.New()
	log.SetOutput(io.Discard)
	return NewRegistry(func(context.Context) (*history.Store, error) { return h, nil }, log, NewAudit(t.TempDir())), h
}

// Tokens are created, used and revoked in drawn order. A token opens its own tenant, with its own role, until it is
// revoked.
func TestATokenSignsInUntilItIsRevoked(t *testing.T) {
	r, _ := newRegistry(t)
	ctx := t.Context()
	rng := rand.New(rand.NewPCG(33, 1))
	type known struct {
		token, tenant, label string
		role                 Role
	}
	var open, gone []known
	for _, name := range []string{"ann", "bob"} {
		token, err := r.Create(ctx, name, RoleAdmin, nil)
		if err != nil {
			t.Fatal(err)
		}
		all, err := r.Tokens(ctx, name)
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		open = append(open, known{token, name, all[0].Label(), RoleAdmin})
	}
	for step := range 60 {
		if rng.IntN(2) == 0 || len(open) < 3 {
			one := known{tenant: []string{"ann", "bob"}[rng.IntN(2)], role: roles[rng.IntN(3)]}
			name := ""
			if rng.IntN(2) == 0 {
				name = "t" + strings.Repeat("x", step%30)
			}
			token, made, err := r.CreateToken(ctx, one.tenant, name, one.role)
			if disdel.KindOf(err) == disdel.Conflict && name != "" {
				continue // the name is in use
			}
			if err != nil {
				t.Fatal(err)
			}
			one.token, one.label = token, made.Label()
			open = append(open, one)
		} else {
			i := 2 + rng.IntN(len(open)-2) // the admins stay
			if _, err := r.RevokeToken(ctx, open[i].tenant, open[i].label); err != nil {
				t.Fatal(err)
			}
			gone, open = append(gone, open[i]), slices.Delete(open, i, i+1)
		}
		for _, one := range open {
			if name, role, err := r.Identify(ctx, one.token); err != nil || name != one.tenant || role != one.role {
				t.Fatalf("step %d: %s of %s: %s, %s, %v", step, one.label, one.tenant, name, role, err)
			}
		}
		for _, one := range gone {
			if _, _, err := r.Identify(ctx, one.token); disdel.KindOf(err) != disdel.Denied {
				t.Fatalf("step %d: revoked %s of %s: %v", step, one.label, one.tenant, err)
			}
		}
	}
	all, err := r.Tokens(ctx, "ann")
	if err != nil || all[0].Used.IsZero() {
		t.Errorf("the last sign-in is not known: %+v, %v", all, err)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(r.audit.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range append(open, gone...) {
		if secret := one.token[strings.LastIndex(one.token, "_")+1:]; strings.Contains(string(text)+string(log), secret) {
			t.Errorf("the registry or the audit log has the token %s", one.label)
		}
	}
	if lines, _ := auditLines(t, r.audit); len(lines) != len(open)+2*len(gone) {
		t.Errorf("%d lines for %d tokens, %d of them revoked", len(lines), len(open)+len(gone), len(gone))
	}
}

// Every token can be revoked; one that is not there is not found.
func TestRevokedTokensAreFoundByName(t *testing.T) {
	r, _ := newRegistry(t)
	ctx := t.Context()
	if _, err := r.Create(ctx, "bob", RoleSubmit, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.CreateToken(ctx, "bob", "chief", RoleAdmin); err != nil {
		t.Fatal(err)
	}
	if _, err := r.RevokeToken(ctx, "bob", "chief"); err != nil {
		t.Error(err)
	}
	for what, of := range map[string][2]string{
		"unknown token": {"bob", "chief"}, "unknown tenant": {"cleo", "chief"}, "no name": {"bob", ""},
	} {
		if _, err := r.RevokeToken(ctx, of[0], of[1]); disdel.KindOf(err) != disdel.NotFound || disdel.AsError(err).Hint == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A tenant as an earlier version wrote it keeps its tokens and its quota, also after a token was added.
func TestTokensOfEarlierVersionsStayValid(t *testing.T) {
	r, h := newRegistry(t)
	ctx := t.Context()
	token := "disdel_ann_" + strings.Repeat("5", 64)
	n, err := h.Note(ctx, history.NoteTenant, "ann")
	if disdel.KindOf(err) != disdel.NotFound {
		t.Fatal(err)
	}
	n.Value = json.RawMessage(`{"name": "ann", "created": "2026-01-02T03:04:05Z", "quota": {"memoryBytes": 2147483648},
		"tokens": [{"role": "submit", "created": "2026-01-02T03:04:05Z", "sha256": "` + hashOf(token) + `"}]}`)
	if _, err := h.WriteNote(ctx, n); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.CreateToken(ctx, "ann", "laptop", RoleRead); err != nil {
		t.Fatal(err)
	}
	if name, role, err := r.Identify(ctx, token); err != nil || name != "ann" || role != RoleSubmit {
		t.Errorf("%s, %s, %v", name, role, err)
	}
	if q, err := r.Quota(ctx, "ann"); err != nil || q != (scheduler.Quota{Memory: 2 * disdel.GB}) {
		t.Errorf("%+v, %v", q, err)
	}
	if _, err := r.RevokeToken(ctx, "ann", hashOf(token)[:shortHash]); err != nil {
		t.Errorf("by the start of its hash: %v", err)
	}
	if _, _, err := r.Identify(ctx, token); disdel.KindOf(err) != disdel.Denied {
		t.Errorf("after that: %v", err)
	}
}

// Sign-ins at the same time write the time of the last one once.
func TestSignInsAreWrittenSeldom(t *testing.T) {
	r, h := newRegistry(t)
	token, err := r.Create(t.Context(), "ann", RoleRead, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Identify(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	before, err := h.Note(t.Context(), history.NoteTenant, "ann")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, _, err := r.Identify(t.Context(), token); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := h.WriteNote(t.Context(), before); err != nil {
		t.Errorf("the tenant was written again: %v", err)
	}
	long := TokenInfo{Hash: "other", Used: time.Now().Add(-2 * usedEvery)}
	if !r.uses.due(long, time.Now()) || r.uses.due(long, time.Now()) {
		t.Error("a sign-in after a long time is written, and only once")
	}
}

// Claims count the bytes that others have claimed, until these are released.
func TestClaimsCountWhatIsNotReleased(t *testing.T) {
	var c Claims
	before, first := c.Add(3)
	if before != 0 {
		t.Errorf("%d before the first claim", before)
	}
	before, second := c.Add(4)
	if before != 3 {
		t.Errorf("%d before the second claim", before)
	}
	first()
	first()
	if before, _ = c.Add(0); before != 4 {
		t.Errorf("%d after the first was released", before)
	}
	second()
	if before, _ = c.Add(0); before != 0 {
		t.Errorf("%d after all were released", before)
	}
}

// A role allows what the roles before it allow; an unknown one allows nothing.
func TestRolesAllowWhatWeakerOnesAllow(t *testing.T) {
	for i, has := range roles {
		for j, asked := range roles {
			if has.Allows(asked) != (i >= j) {
				t.Errorf("%s allows %s: %v", has, asked, has.Allows(asked))
			}
		}
		if Role("other").Allows(has) {
			t.Errorf("an unknown role allows %s", has)
		}
	}
}

// What others share with a deleted tenant by name is not shared with a later tenant of that name. Nobody is called as
// the server's home or its operator.
func TestADeletedTenantHasNoShares(t *testing.T) {
	r, _ := newRegistry(t)
	ctx := t.Context()
	for _, name := range []string{"ann", "bob", "cleo"} {
		if _, err := r.Create(ctx, name, RoleSubmit, nil); err != nil {
			t.Fatal(err)
		}
	}
	both := Item{Kind: ItemDataset, Owner: "ann", Name: "lent"}
	if _, err := r.Share(ctx, both, []string{"bob", "cleo"}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Share(ctx, Item{Kind: ItemModel, Owner: "cleo", Name: "pets"}, []string{"bob"}, false); err != nil {
		t.Fatal(err)
	}
	if err := r.Delete(ctx, "bob"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Create(ctx, "bob", RoleSubmit, nil); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []ItemKind{ItemDataset, ItemModel} {
		if list, err := r.SharedWith(ctx, "bob", kind); err != nil || len(list) > 0 {
			t.Errorf("the new bob sees %+v, %v", list, err)
		}
	}
	if one, err := r.ShareOf(ctx, both); err != nil || !one.Allows("cleo") || one.Allows("bob") {
		t.Errorf("%+v, %v", one, err)
	}
	for _, name := range []string{"home", "operator"} {
		if _, err := r.Create(ctx, name, RoleSubmit, nil); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("a tenant is called %s: %v", name, err)
		}
	}
}

// A process knows its own changes and new tokens at once, and what another process revoked within half a second.
func TestARevokedTokenIsRefusedWithinHalfASecond(t *testing.T) {
	r, h := newRegistry(t)
	ctx := t.Context()
	log := logrus.New()
	log.SetOutput(io.Discard)
	other := NewRegistry(func(context.Context) (*history.Store, error) { return h, nil }, log, NewAudit(t.TempDir()))
	denied := func(token string) bool {
		_, _, err := r.Identify(ctx, token)
		if err != nil && disdel.KindOf(err) != disdel.Denied {
			t.Fatal(err)
		}
		return err != nil
	}
	for _, by := range []*Registry{r, other} {
		token, err := r.Create(ctx, "ann", RoleSubmit, nil)
		if err != nil {
			t.Fatal(err)
		}
		second, _, err := other.CreateToken(ctx, "ann", "second", RoleRead)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the first use of a token is written, which is a change
			if denied(token) || denied(second) {
				t.Fatal("a new token is refused")
			}
		}
		if err := by.Delete(ctx, "ann"); err != nil {
			t.Fatal(err)
		}
		if by == r && !denied(token) {
			t.Error("the process that revoked a token knows it still")
		}
		r.recent.mu.Lock()
		kept, isKept := r.recent.kept["ann"]
		if isKept { // as if half a second had passed
			kept.at = kept.at.Add(-recentFor)
			r.recent.kept["ann"] = kept
		}
		r.recent.mu.Unlock()
		if isKept == (by == r) {
			t.Errorf("a description is kept after a change by this process, or none before one by another: %v", isKept)
		}
		if !denied(token) {
			t.Errorf("a token is known %v after it was revoked", recentFor)
		}
	}
}
