package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/tenant"
)

// adminHouse is a house whose tenants ann and bob have tokens, quotas, a share and lines in the audit log.
func adminHouse(t *testing.T) (h *house, secrets []string) {
	t.Helper()
	h = newHouseOf(t, service.Config{Settings: []service.Setting{
		{Name: "pool-memory", Value: "4GB", Source: "variable DISDEL_POOL_MEMORY", Meaning: "memory of the pool"},
	}})
	for _, name := range []string{"ann", "bob"} {
		quota := scheduler.Quota{Jobs: 4, Memory: 2 * disdel.GB, Disk: 10 * disdel.MB, Cost: 500}
		token, err := h.s.Tenants().Create(t.Context(), name, tenant.RoleSubmit, &quota)
		if err != nil {
			t.Fatal(err)
		}
		second, info, err := h.s.Tenants().CreateToken(t.Context(), name, name+"-laptop", tenant.RoleRead)
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, token, second, info.Hash)
		if err := h.s.Audit().Write(tenant.AuditLine{
			Event: tenant.AuditSubmission, Tenant: name, Role: tenant.RoleSubmit, From: "10.0.0.7", Method: "POST",
			Path: "/api/v1/jobs", Status: http.StatusCreated, Job: disdel.JobID("job-of-" + name),
		}); err != nil {
			t.Fatal(err)
		}
		if err := h.s.Tenant(name).AddDigits(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.s.Tenant("ann").Share(t.Context(), tenant.ItemDataset, "digits", []string{"bob"}, false); err != nil {
		t.Fatal(err)
	}
	return h, secrets
}

// adminPaths are the addresses of the sections.
func adminPaths() (out []string) {
	for _, s := range adminSections {
		out = append(out, Root+"admin?section="+s.key)
	}
	return append(out, Root+"admin?section=audit&q=bob", Root+"admin?section=audit&event=token")
}

// The operator sees the quotas, tokens and deeds of all tenants, and the settings of the server. No page has a secret.
func TestTheOperatorSeesAllTenants(t *testing.T) {
	h, secrets := adminHouse(t)
	b := h.signedIn("operator admin")
	for path, want := range map[string][]string{
		"":                         {"ann", "bob", "0 of 4", "of 10.0 MB", "0.0 of 500.0 GB-s", "digits dataset 1 tenant "},
		"?section=queue":           {"Memory of the pool", "No job waits"},
		"?section=tokens":          {"ann-laptop", "bob-laptop", "read", "never"},
		"?section=audit":           {"job-of-ann", "job-of-bob", "a token was made", "10.0.0.7"},
		"?section=audit&q=ANN+jo":  {"job-of-ann"},
		"?section=settings":        {"--pool-memory", "4GB", "variable DISDEL_POOL_MEMORY", "memory of the pool"},
		"?section=audit&event=any": {"No line matches"},
	} {
		doc, text := b.page(Root + "admin" + path)
		shown := words(doc)
		for _, w := range want {
			if !strings.Contains(shown, w) {
				t.Errorf("%s: no %q in %s", path, w, shown)
			}
		}
		for _, s := range secrets {
			if strings.Contains(text, s) {
				t.Errorf("%s has the secret of a token", path)
			}
		}
		if strings.HasSuffix(path, "jo") && strings.Contains(shown, "bob") {
			t.Errorf("%s shows lines without the words", path)
		}
	}
	if res, _ := b.send("GET", Root+"admin?section=none", nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown section: %d", res.StatusCode)
	}
}

// An admin of a tenant sees this tenant, and no name of another one, in any section and by any search.
func TestAnAdminOfATenantSeesNoOther(t *testing.T) {
	h, _ := adminHouse(t)
	b := h.signedIn("ann admin")
	for _, path := range adminPaths() {
		doc, text := b.page(path)
		if strings.Contains(strings.ReplaceAll(text, `value="bob"`, ""), "bob") {
			t.Errorf("%s names another tenant: %s", path, words(doc))
		}
		if strings.HasSuffix(path, "settings") && strings.Contains(text, "pool-memory") {
			t.Errorf("a tenant sees settings of the server")
		}
	}
	if doc, _ := b.page(Root + "admin?section=tokens"); len(rows(doc, "tokens")) != 2 {
		t.Errorf("ann does not see her own tokens: %s", words(doc))
	}
}

// Without the role, the page says which one it takes, and nothing leads to it.
func TestThePageForAdminsNeedsTheRole(t *testing.T) {
	h, _ := adminHouse(t)
	for _, role := range []string{"read", "submit"} {
		b := h.signedIn("ann " + role)
		for _, path := range adminPaths() {
			res, text := b.send("GET", path, nil)
			want := fmt.Sprintf("a token of the role %s does not allow this", role)
			if res.StatusCode != http.StatusForbidden || !strings.Contains(text, want) ||
				!strings.Contains(text, "the role admin") || strings.Contains(text, "laptop") {
				t.Errorf("%s as %s: %d %s", path, role, res.StatusCode, text)
			}
		}
		if _, text := b.page(Root); strings.Contains(text, Root+"admin") {
			t.Errorf("the page of the role %s has a link to the page for admins", role)
		}
	}
	if _, text := h.signedIn("ann admin").page(Root); !strings.Contains(text, Root+"admin") {
		t.Error("no link leads admins to their page")
	}
}

// The page for admins in a browser: axe finds nothing, and a phone shows it.
func TestThePageForAdminsInABrowser(t *testing.T) {
	h, _ := adminHouse(t)
	c := newChromium(t)
	c.signIn(h, "operator admin")
	for i, path := range adminPaths()[:len(adminSections)] {
		c.views(h.URL+path, 40+i)
	}
	c.do(chromedp.Navigate(h.URL+Root+"admin?section=audit"), chromedp.WaitVisible("#audit"))
}
