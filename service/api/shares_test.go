package api

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/apitypes"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/test/race"
	testwait "github.com/disdel/disdel/internal/test/wait"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/tenant"
)

// A token of the role submit is enough for a first day: it adds data sets, trains, and shares what came of it.
func TestTheRoleSubmitIsEnoughForAFirstDay(t *testing.T) {
	h := newHouse(t, Config{})
	digits := apitypes.Source{Source: "digits", Overwrite: true}
	if status, data := h.ask("ann submit", "POST", "/api/v1/datasets", digits); status != 201 {
		t.Fatalf("a data set: %d %s", status, data)
	}
	status, data := h.ask("ann submit", "POST", "/api/v1/jobs", apitypes.Submission{File: job})
	var rec disdel.Record
	if err := json.Unmarshal(data, &rec); err != nil || status != 201 {
		t.Fatalf("a job: %d %s, %v", status, data, err)
	}
	at := "/api/v1/jobs/" + string(rec.ID)
	if status, data = h.ask("ann submit", "GET", at+"/wait?timeout=5m", nil); status != 200 {
		t.Fatalf("its end: %d %s", status, data)
	}
	if err := json.Unmarshal(data, &rec); err != nil || rec.Model == nil {
		t.Fatalf("%s, %v", data, err)
	}
	paths := map[tenant.ItemKind]string{
		tenant.ItemDataset: "/api/v1/datasets/ann%2Fdigits", tenant.ItemModel: "/api/v1/models/ann%2F" + rec.Model.Name,
		tenant.ItemJob: at,
	}
	names := map[tenant.ItemKind]string{
		tenant.ItemDataset: "digits", tenant.ItemModel: rec.Model.Name, tenant.ItemJob: string(rec.ID),
	}
	look := func(want int, when string) {
		t.Helper()
		for kind, path := range paths {
			if status, data := h.ask("bob read", "GET", path, nil); status != want {
				t.Errorf("bob looks at the %s %s: %d %s", kind, when, status, data)
			}
		}
		for list, name := range map[string]string{
			"datasets": "ann/digits", "models": "ann/" + rec.Model.Name, "jobs": "ann/small",
		} {
			if _, data := h.ask("bob read", "GET", "/api/v1/"+list, nil); bytes.Contains(data, []byte(name)) != (want == 200) {
				t.Errorf("bob's %s %s: %s", list, when, data)
			}
		}
	}
	look(404, "before")
	for kind, name := range names {
		share := "/api/v1/shares/" + string(kind) + "/" + name
		if status, data := h.ask("ann read", "PUT", share, apitypes.ShareRequest{All: true}); status != 403 {
			t.Errorf("the role read shares: %d %s", status, data)
		}
		if status, data := h.ask("ann submit", "PUT", share, apitypes.ShareRequest{With: []string{"bob"}}); status != 200 {
			t.Errorf("share %s: %d %s", kind, status, data)
		}
		if status, data := h.ask("bob read", "GET", share, nil); status < 400 {
			t.Errorf("bob looks at ann's share: %d %s", status, data)
		}
	}
	look(200, "while it is shared")
	for kind, path := range paths {
		if status, data := h.ask("bob admin", "DELETE", path, nil); status != 403 {
			t.Errorf("bob deletes the %s: %d %s", kind, status, data)
		}
	}
	if status, data := h.ask("bob submit", "POST", at+"/cancel", nil); status != 403 {
		t.Errorf("bob cancels ann's job: %d %s", status, data)
	}
	if status, data := h.ask("bob submit", "PUT", at+"/remark", map[string]any{"tags": []string{"x"}}); status != 403 {
		t.Errorf("bob tags ann's job: %d %s", status, data)
	}
	row := map[string]any{"inputs": [][]float32{make([]float32, 64)}}
	if status, data := h.ask("bob submit", "POST", paths[tenant.ItemModel]+"/infer", row); status != 200 {
		t.Errorf("bob asks ann's model: %d %s", status, data)
	}
	for kind, name := range names {
		path := "/api/v1/shares/" + string(kind) + "/" + name
		if status, data := h.ask("ann submit", "DELETE", path, nil); status != 200 {
			t.Errorf("unshare %s: %d %s", kind, status, data)
		}
	}
	look(404, "afterwards")
	status, data = h.ask("ann read", "GET", "/api/v1/shares", nil)
	if status != 200 || !bytes.Contains(data, []byte("[]")) {
		t.Errorf("what ann shares at the end: %d %s", status, data)
	}
	if status, data := h.ask("ann read", "DELETE", "/api/v1/datasets/digits", nil); status != 403 {
		t.Errorf("the role read deletes: %d %s", status, data)
	}
	if status, data := h.ask("ann submit", "DELETE", "/api/v1/datasets/digits", nil); status != 200 {
		t.Errorf("ann deletes what is hers: %d %s", status, data)
	}
}

// A job that would keep more in Redis than the tenant's quota allows is refused, with the figures and what to do.
func TestAJobKeepsToTheQuotaOfRedis(t *testing.T) {
	h := newHouse(t, Config{})
	h.submitted("training.epochs=1")
	quota := &scheduler.Quota{Redis: 100 * disdel.KB}
	if _, err := h.s.Tenants().Create(t.Context(), "ann", tenant.RoleSubmit, quota); err != nil {
		t.Fatal(err)
	}
	status, data := h.ask("ann submit", "POST", "/api/v1/jobs", apitypes.Submission{File: job})
	if status != 422 || !bytes.Contains(data, []byte("the quota is 100 KB")) ||
		!bytes.Contains(data, []byte("--redis-memory")) {
		t.Errorf("%d %s", status, data)
	}
}

// An upload whose token is revoked ends: the server reads no further, and says why.
func TestARevokedTokenEndsItsUpload(t *testing.T) {
	h := newHouse(t, Config{})
	token, made, err := h.s.Tenants().CreateToken(t.Context(), "ann", "laptop", tenant.RoleSubmit)
	if err != nil {
		t.Fatal(err)
	}
	body, in := io.Pipe()
	defer in.Close()
	path := "/api/v1/weights/sha256:" + strings.Repeat("0", 64)
	r, err := http.NewRequestWithContext(t.Context(), "PUT", h.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = 1 << 20
	r.Header.Set("Authorization", "Bearer "+token)
	began := make(chan struct{})
	go func() {
		defer close(began)
		head := binary.LittleEndian.AppendUint64(nil, 1<<19) // of the header, the most of which does not come
		in.Write(append(head, make([]byte, 1<<10)...))       //nolint:errcheck // the answer shows what came of it
	}()
	go func() {
		<-began
		testwait.Until(t, "sign-in", func() bool { // else it would be refused at once
			list, err := h.s.Tenants().Tokens(t.Context(), "ann")
			return err == nil && slices.ContainsFunc(list, func(i tenant.TokenInfo) bool {
				return i.Label() == made.Label() && !i.Used.IsZero()
			})
		})
		if _, err := h.s.Tenants().RevokeToken(t.Context(), "ann", made.Label()); err != nil {
			t.Error(err)
		}
	}()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusUnauthorized || !bytes.Contains(data, []byte("taken away")) {
		t.Errorf("%d %s, %v", res.StatusCode, data, errors.Join(err))
	}
}

// A client lists more jobs than a server lists at once.
func TestAClientListsMoreJobsThanAServerAtOnce(t *testing.T) {
	race.SkipSequential(t)
	h := newHouse(t, Config{})
	at, err := client.Remote(client.Server{URL: h.URL, Token: h.tokens["ann read"]})
	if err != nil {
		t.Fatal(err)
	}
	store, err := h.s.Tenant("ann").History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const jobs = mostJobs + 5
	for n := range jobs {
		r := disdel.Record{
			APIVersion: disdel.APIVersion, ID: disdel.JobID(fmt.Sprintf("job-%026d", n)), Status: disdel.StatusCanceled,
			Tenant: "ann",
		}
		if err := store.Save(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
	}
	for limit, want := range map[int]int{mostJobs + 2: mostJobs + 2, 3 * mostJobs: jobs} {
		list, err := at.Records.List(t.Context(), history.Query{Limit: limit})
		seen := map[disdel.JobID]bool{}
		for i := range list {
			seen[list[i].ID] = true
		}
		if err != nil || len(list) != want || len(seen) != want {
			t.Errorf("limit %d: %d jobs, %d different ones, %v; want %d", limit, len(list), len(seen), err, want)
		}
	}
}
