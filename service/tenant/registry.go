package tenant

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/scheduler"
)

// Role is what a token allows. Each role also allows what the roles before it allow.
type Role string

// The roles.
const (
	RoleRead   Role = "read"   // read jobs, records, models and data sets
	RoleSubmit Role = "submit" // add and delete data sets; submit, stop, resume and delete jobs; infer; share
	RoleAdmin  Role = "admin"  // look at the tenant's quotas, tokens and audit log; the operator at those of all
)

// roles lists all roles, the weakest first.
var roles = []Role{RoleRead, RoleSubmit, RoleAdmin}

// Allows reports whether the role is enough where another role is required. An unknown role allows nothing.
func (r Role) Allows(required Role) bool {
	rank := slices.Index(roles, r)
	return rank >= 0 && rank >= slices.Index(roles, required)
}

// Info describes a tenant to an operator. It has no secrets.
type Info struct {
	Name    string          `json:"name"`
	Created time.Time       `json:"created"`
	Quota   scheduler.Quota `json:"quota"`
	Tokens  []TokenInfo     `json:"tokens"`
}

var tenantName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// IsName reports whether a tenant can have a name. Such a name hides no path.
func IsName(name string) bool { return tenantName.MatchString(name) }

// operatorName is the name of whoever runs the server in audit logs.
const operatorName = "operator"

// tokenPrefix begins every token, so that people and secret scanners recognise one.
const tokenPrefix = "disdel"

// Registry keeps the tenants of a history with their quotas and the hashes of their tokens. It is safe for concurrent
// use.
type Registry struct {
	history func(ctx context.Context) (*history.Store, error) // opens the history of all tenants
	log     logrus.FieldLogger
	audit   *Audit // of tokens; nil: none
	uses    uses
	recent  recent
}

// recentFor is how long a description of a tenant is used after it was read. Another process may have changed it since.
// Every request looks its tenant up: on a busy server the look-ups would delay the requests of all tenants.
const recentFor = 500 * time.Millisecond

// recent keeps the descriptions of tenants that were read just before.
type recent struct {
	mu      sync.Mutex
	kept    map[string]recentInfo // guarded by mu: by tenant
	changed time.Time             // guarded by mu: of the newest change by this process
}

// recentInfo is a description of a tenant. at is when reading began.
type recentInfo struct {
	info Info
	at   time.Time
}

func (k *recent) get(name string) (Info, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.kept[name]
	return r.info, ok && time.Since(r.at) < recentFor
}

// put keeps a description, and drops the older ones.
func (k *recent) put(name string, r recentInfo) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.kept, func(_ string, r recentInfo) bool { return time.Since(r.at) >= recentFor })
	if r.at.Before(k.changed) {
		return
	}
	if k.kept == nil {
		k.kept = map[string]recentInfo{}
	}
	k.kept[name] = r
}

// clear drops all descriptions after a change by this process. A description whose reading began before the change is
// not kept either.
func (k *recent) clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = nil
	k.changed = time.Now()
}

// NewRegistry returns the registry of a history, which is opened when it is first needed. audit may be nil.
func NewRegistry(open func(ctx context.Context) (*history.Store, error), log logrus.FieldLogger, audit *Audit,
) *Registry {
	return &Registry{history: open, log: log, audit: audit}
}

// write writes a line of the audit log. A failure is only logged.
func (r *Registry) write(line AuditLine) {
	if r.audit == nil {
		return
	}
	if err := r.audit.Write(line); err != nil {
		r.log.WithError(err).Warn("the audit log lacks a line")
	}
}

// Create makes a token for a tenant, and makes the tenant if it does not exist. Only the caller learns the token: the
// registry keeps a hash of it. A quota replaces the tenant's quota; nil leaves it as it is. It returns Invalid for a
// name or role that there cannot be.
func (r *Registry) Create(ctx context.Context, name string, role Role, quota *scheduler.Quota) (token string,
	err error,
) {
	if !tenantName.MatchString(name) || name == HomeOwner || name == operatorName {
		return "", &disdel.Error{
			Kind: disdel.Invalid, Op: "create tenant", Msg: fmt.Sprintf("%.80q is not a name for a tenant", name),
			Hint: "use at most 40 small letters, digits and dashes; " + HomeOwner + " means the server's own home, and " +
				operatorName + " whoever runs it",
		}
	}
	token, made, err := newToken(name, "", role)
	if err != nil {
		return "", err
	}
	err = r.change(ctx, name, func(t *Info, _ bool) error {
		t.Tokens = append(t.Tokens, made)
		if quota != nil {
			t.Quota = *quota
		}
		return nil
	})
	if err == nil {
		r.tokenChanged("a token was made", name, made)
	}
	return token, err
}

// mostWrites is how often a change is tried again because another process was faster.
const mostWrites = 50

// change changes the stored description of a tenant. Others may change it at the same time. known tells whether the
// tenant exists. An error of change is returned, and nothing is written.
func (r *Registry) change(ctx context.Context, name string, change func(t *Info, known bool) error) error {
	h, err := r.history(ctx)
	if err != nil {
		return err
	}
	for range mostWrites {
		n, err := h.Note(ctx, history.NoteTenant, name)
		if err != nil && disdel.KindOf(err) != disdel.NotFound {
			return err
		}
		t, known := Info{Name: name, Created: time.Now().UTC().Round(time.Second)}, err == nil
		if known {
			if err := json.Unmarshal(n.Value, &t); err != nil {
				return &disdel.Error{Kind: disdel.Corrupt, Op: "read tenant", Msg: name, Err: err}
			}
		}
		if err := change(&t, known); err != nil {
			return err
		}
		if n.Value, err = json.Marshal(t); err != nil {
			return err
		}
		if _, err = h.WriteNote(ctx, n); disdel.KindOf(err) != disdel.Conflict {
			r.recent.clear()
			return err
		}
	}
	return &disdel.Error{Kind: disdel.Conflict, Op: "write tenant", Msg: name}
}

// hashOf returns the hash of a token. A token has 256 random bits, so a slower hash would not protect it better.
func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// List lists the tenants, by name.
func (r *Registry) List(ctx context.Context) ([]Info, error) {
	h, err := r.history(ctx)
	if err != nil {
		return nil, err
	}
	notes, err := h.Notes(ctx, history.NoteTenant)
	out := make([]Info, len(notes))
	for i, n := range notes {
		if err := json.Unmarshal(n.Value, &out[i]); err != nil {
			return nil, &disdel.Error{Kind: disdel.Corrupt, Op: "read tenant", Msg: n.Name, Err: err}
		}
	}
	return out, err
}

// Delete revokes all tokens of a tenant, and takes back what others share with it. Its jobs, records, models and data
// sets stay, and a new tenant of the same name has them again. It returns NotFound.
func (r *Registry) Delete(ctx context.Context, name string) error {
	h, err := r.history(ctx)
	if err != nil {
		return err
	}
	if err := r.unshareAll(ctx, h, name); err != nil {
		return err
	}
	n, err := h.Note(ctx, history.NoteTenant, name)
	if disdel.KindOf(err) == disdel.NotFound {
		return noTenant(name)
	}
	if err != nil {
		return err
	}
	err = h.DeleteNote(ctx, n)
	r.recent.clear()
	if err == nil {
		const what = "all tokens of the tenant were taken away"
		r.log.WithField("tenant", name).Info(what)
		r.write(AuditLine{Event: AuditToken, Tenant: name, What: what})
	}
	return err
}

func noTenant(name string) error {
	return &disdel.Error{
		Kind: disdel.NotFound, Op: "find tenant", Msg: fmt.Sprintf("there is no tenant %.80q", name),
		Hint: "disdel tenant list shows all tenants",
	}
}

// Identify returns the tenant and the role of a token. It returns Denied for an unknown token. A token that another
// process revokes is known for at most half a second more.
func (r *Registry) Identify(ctx context.Context, token string) (tenant string, role Role, err error) {
	unknown := &disdel.Error{Kind: disdel.Denied, Op: "sign in", Msg: "the token is unknown"}
	parts := strings.Split(token, "_")
	if len(parts) != 3 || parts[0] != tokenPrefix || !tenantName.MatchString(parts[1]) {
		return "", "", unknown
	}
	if t, ok := r.recent.get(parts[1]); ok {
		if known, ok := t.withToken(token); ok {
			r.used(ctx, t.Name, known)
			return t.Name, known.Role, nil
		}
	} // another process may have made the token since
	t, err := r.findAnew(ctx, parts[1])
	if disdel.KindOf(err) == disdel.NotFound {
		return "", "", unknown
	}
	if err != nil {
		return "", "", err
	}
	known, ok := t.withToken(token)
	if !ok {
		return "", "", unknown
	}
	r.used(ctx, t.Name, known)
	return t.Name, known.Role, nil
}

// withToken returns the description of a token of the tenant.
func (t *Info) withToken(token string) (known TokenInfo, ok bool) {
	hash := []byte(hashOf(token))
	for _, known := range t.Tokens {
		if subtle.ConstantTimeCompare(hash, []byte(known.Hash)) == 1 {
			return known, true
		}
	}
	return known, false
}

// findAnew reads the description of a tenant and keeps it for a moment.
func (r *Registry) findAnew(ctx context.Context, name string) (Info, error) {
	began := time.Now()
	t, err := r.find(ctx, name)
	if err == nil {
		r.recent.put(name, recentInfo{t, began})
	}
	return t, err
}

func (r *Registry) find(ctx context.Context, name string) (t Info, err error) {
	h, err := r.history(ctx)
	if err != nil {
		return t, err
	}
	n, err := h.Note(ctx, history.NoteTenant, name)
	if err == nil {
		err = json.Unmarshal(n.Value, &t)
	}
	return t, err
}

// Quota returns what the jobs of a tenant may use together. The zero quota bounds nothing: jobs without a tenant ("")
// have it, and those of a tenant that was deleted meanwhile.
func (r *Registry) Quota(ctx context.Context, name string) (scheduler.Quota, error) {
	if name == "" {
		return scheduler.Quota{}, nil
	}
	if t, ok := r.recent.get(name); ok {
		return t.Quota, nil
	}
	t, err := r.findAnew(ctx, name)
	if disdel.KindOf(err) == disdel.NotFound {
		err = nil
	}
	return t.Quota, err
}

// SameToken reports whether two tokens are equal. Its running time does not reveal how much of them is. "" equals no
// token.
func SameToken(a, b string) bool {
	return a != "" && b != "" && subtle.ConstantTimeCompare([]byte(hashOf(a)), []byte(hashOf(b))) == 1
}
