package web

import (
	"fmt"
	"net/http"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/tenant"
)

// admin is the page of admins: how tenants use their quotas, the queue, tokens, the audit log and settings. An admin of
// a tenant sees only that tenant; the operator sees all tenants, and the settings of the server.
type admin struct {
	Section  string
	Tabs     []tab
	Uses     []tenantUse
	More     int // tenants that are not shown
	Queue    pool
	Audit    auditList
	Settings []service.Setting
}

// Bounds of the page: tenants whose use is counted, and lines of the audit log.
const (
	mostTenants    = 200
	mostAuditLines = 200
)

// adminSections are the sections of the page, and what each loads.
var adminSections = []struct {
	key, name string
	load      func(v *visit, page *admin) error
}{
	{"", "Tenants", loadTenants},
	{"queue", "Queue", loadQueue},
	{"tokens", "Tokens", loadTenants},
	{"audit", "Audit log", loadAudit},
	{"settings", "Settings", loadSettings},
}

func adminPage(v *visit) error {
	page, found := admin{Section: v.URL.Query().Get("section")}, false
	for _, s := range adminSections {
		one := tab{Name: s.name, Link: Root + "admin", Here: s.key == page.Section}
		if s.key != "" {
			one.Link += "?section=" + s.key
		}
		page.Tabs = append(page.Tabs, one)
		if !one.Here {
			continue
		}
		found = true
		if err := s.load(v, &page); err != nil {
			return err
		}
	}
	if !found {
		return &disdel.Error{
			Kind: disdel.NotFound, Op: "show admin page", Msg: fmt.Sprintf("there is no section %.80q", page.Section),
			Hint: "sections are tenants, queue, tokens, audit and settings",
		}
	}
	v.write(http.StatusOK, "admin", view{Title: "Admin", Here: "Admin", Body: page})
	return nil
}

// tenantUse is a tenant with its quotas.
type tenantUse struct{ service.TenantUse }

// use is what is used of a quota. Share is in percent; 0: the quota is not bounded.
type use struct {
	Name, Used, Allowed string
	Share               float64
}

// Quotas are the quotas of a tenant in the order of the table.
func (t tenantUse) Quotas() []use {
	q := t.Quota
	return []use{
		useOf("jobs at once", fmt.Sprint(t.Running), fmt.Sprint(q.Jobs), float64(t.Running), float64(q.Jobs)),
		useOf("memory", t.Memory.String(), q.Memory.String(), float64(t.Memory), float64(q.Memory)),
		useOf("disk", t.Disk.String(), q.Disk.String(), float64(t.Disk), float64(q.Disk)),
		useOf("Redis", t.Redis.String(), q.Redis.String(), float64(t.Redis), float64(q.Redis)),
		useOf("cost", fmt.Sprintf("%.1f", t.Spent), fmt.Sprintf("%.1f GB-s", q.Cost), t.Spent, q.Cost),
	}
}

func useOf(name, used, allowed string, is, most float64) use {
	out := use{Name: name, Used: used}
	if most > 0 {
		out.Allowed, out.Share = allowed, 100*is/most
	}
	return out
}

// Readers says who may read what the tenant shares.
func (tenantUse) Readers(s tenant.Share) string {
	if s.All {
		return "all tenants"
	}
	return disdel.Counted(len(s.With), "tenant")
}

func loadTenants(v *visit, page *admin) error {
	list, more, err := v.s.TenantUses(v.Context(), mostTenants)
	page.More = more
	for _, t := range list {
		page.Uses = append(page.Uses, tenantUse{t})
	}
	return err
}

func loadQueue(v *visit, page *admin) (err error) {
	page.Queue, err = readPool(v)
	return err
}

// auditList is the shown part of the audit log.
type auditList struct {
	Words, Event string
	Events       []string
	Lines        []tenant.AuditLine
	Full         bool // there may be more lines
}

func loadAudit(v *visit, page *admin) error {
	q := v.URL.Query()
	page.Audit = auditList{Words: q.Get("q"), Event: q.Get("event"), Events: []string{
		tenant.AuditSignIn, tenant.AuditSubmission, tenant.AuditChange, tenant.AuditDeletion, tenant.AuditShare,
		tenant.AuditToken, tenant.AuditRefused,
	}}
	lines, err := v.s.AuditLines(v.Context(), tenant.AuditQuery{
		Words: page.Audit.Words, Event: page.Audit.Event, Limit: mostAuditLines,
	})
	page.Audit.Lines, page.Audit.Full = lines, len(lines) == mostAuditLines
	return err
}

func loadSettings(v *visit, page *admin) error {
	page.Settings = v.s.Settings()
	return nil
}
