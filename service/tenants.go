package service

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/scheduler"
)

// Role is what a token allows. Each allows what the ones before it allow.
type Role string

// The roles.
const (
	RoleRead   Role = "read"   // to look at jobs, records, models and data sets
	RoleSubmit Role = "submit" // to submit, stop and resume jobs, and to ask models
	RoleAdmin  Role = "admin"  // to add and to remove data sets
)

// roles is all of them, the weakest first.
var roles = []Role{RoleRead, RoleSubmit, RoleAdmin}

// Allows tells whether a role is enough where another one is asked for.
func (r Role) Allows(asked Role) bool {
	rank := func(of Role) int {
		for i, x := range roles {
			if x == of {
				return i
			}
		}
		return -1
	}
	return rank(r) >= 0 && rank(r) >= rank(asked)
}

// TenantInfo is a tenant as an operator sees it: nothing in it opens anything.
type TenantInfo struct {
	Name    string          `json:"name"`
	Created time.Time       `json:"created"`
	Quota   scheduler.Quota `json:"quota"`
	Tokens  []TokenInfo     `json:"tokens"`
}

// TokenInfo is a token that was given out: what it allows, and a hash to know it by.
type TokenInfo struct {
	Role    Role      `json:"role"`
	Created time.Time `json:"created"`
	Hash    string    `json:"sha256"`
}

var tenantName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// tokenPrefix tells what a text is, for people and for programs that look for secrets.
const tokenPrefix = "disdel"

// CreateTenant makes a token for a tenant, and the tenant where there is none of the name. Nobody but the caller ever
// learns the token: a hash of it is kept. A quota replaces the one before; nil leaves it.
func (s *core) CreateTenant(ctx context.Context, name string, role Role, quota *scheduler.Quota) (token string,
	err error,
) {
	if !tenantName.MatchString(name) {
		return "", &disdel.Error{
			Kind: disdel.Invalid, Op: "create tenant", Msg: fmt.Sprintf("%.80q is no name of a tenant", name),
			Hint: "use at most 40 small letters, digits and dashes",
		}
	}
	if !role.Allows(RoleRead) {
		return "", &disdel.Error{
			Kind: disdel.Invalid, Op: "create tenant", Msg: fmt.Sprintf("there is no role %.80q", role),
			Hint: "use read, submit or admin",
		}
	}
	secret := make([]byte, 32)
	rand.Read(secret)
	token = strings.Join([]string{tokenPrefix, name, hex.EncodeToString(secret)}, "_")
	err = s.changeTenant(ctx, name, func(t *TenantInfo) {
		t.Tokens = append(t.Tokens, TokenInfo{role, time.Now().UTC().Round(time.Second), hashOf(token)})
		if quota != nil {
			t.Quota = *quota
		}
	})
	if err == nil {
		s.log.WithFields(logrus.Fields{"tenant": name, "role": string(role)}).Info("a token was made")
	}
	return token, err
}

// changeTenant writes the next state of a tenant, however many do so at once.
func (s *core) changeTenant(ctx context.Context, name string, change func(*TenantInfo)) error {
	h, err := s.everything(ctx)
	if err != nil {
		return err
	}
	for range mostWrites {
		n, err := h.Note(ctx, history.NoteTenant, name)
		if err != nil && disdel.KindOf(err) != disdel.NotFound {
			return err
		}
		t := TenantInfo{Name: name, Created: time.Now().UTC().Round(time.Second)}
		if err == nil {
			err = json.Unmarshal(n.Value, &t)
		} else {
			err = nil
		}
		if err != nil {
			return &disdel.Error{Kind: disdel.Corrupt, Op: "read tenant", Msg: name, Err: err}
		}
		change(&t)
		if n.Value, err = json.Marshal(t); err != nil {
			return err
		}
		if _, err = h.WriteNote(ctx, n); disdel.KindOf(err) != disdel.Conflict {
			return err
		}
	}
	return &disdel.Error{Kind: disdel.Conflict, Op: "write tenant", Msg: name}
}

// hashOf is how a token is kept. It has 256 bits by lot: no slower hash makes it harder to guess.
func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Tenants lists the tenants, by name.
func (s *core) Tenants(ctx context.Context) ([]TenantInfo, error) {
	h, err := s.everything(ctx)
	if err != nil {
		return nil, err
	}
	notes, err := h.Notes(ctx, history.NoteTenant)
	out := make([]TenantInfo, len(notes))
	for i, n := range notes {
		if err := json.Unmarshal(n.Value, &out[i]); err != nil {
			return nil, &disdel.Error{Kind: disdel.Corrupt, Op: "read tenant", Msg: n.Name, Err: err}
		}
	}
	return out, err
}

// DeleteTenant takes a tenant's tokens away. Its jobs, records, models and data sets stay, and are there again for a
// tenant of the same name. It returns NotFound.
func (s *core) DeleteTenant(ctx context.Context, name string) error {
	h, err := s.everything(ctx)
	if err != nil {
		return err
	}
	n, err := h.Note(ctx, history.NoteTenant, name)
	if err != nil {
		return err
	}
	if err = h.DeleteNote(ctx, n); err == nil {
		s.log.WithField("tenant", name).Info("all tokens of the tenant were taken away")
	}
	return err
}

// Identify is whose a token is, and what it allows. It returns Denied for one that nobody was given.
func (s *core) Identify(ctx context.Context, token string) (tenant string, role Role, err error) {
	unknown := &disdel.Error{Kind: disdel.Denied, Op: "sign in", Msg: "nobody has this token"}
	parts := strings.Split(token, "_")
	if len(parts) != 3 || parts[0] != tokenPrefix || !tenantName.MatchString(parts[1]) {
		return "", "", unknown
	}
	t, err := s.tenantNamed(ctx, parts[1])
	if disdel.KindOf(err) == disdel.NotFound {
		return "", "", unknown
	}
	if err != nil {
		return "", "", err
	}
	hash := []byte(hashOf(token))
	for _, known := range t.Tokens {
		if subtle.ConstantTimeCompare(hash, []byte(known.Hash)) == 1 {
			return t.Name, known.Role, nil
		}
	}
	return "", "", unknown
}

func (s *core) tenantNamed(ctx context.Context, name string) (t TenantInfo, err error) {
	h, err := s.everything(ctx)
	if err != nil {
		return t, err
	}
	n, err := h.Note(ctx, history.NoteTenant, name)
	if err == nil {
		err = json.Unmarshal(n.Value, &t)
	}
	return t, err
}

// quota is what the jobs of this Service's tenant may have together; those without a tenant have no bound.
func (s *Service) quota(ctx context.Context) (scheduler.Quota, error) {
	if s.whose() == "" {
		return scheduler.Quota{}, nil
	}
	t, err := s.tenantNamed(ctx, s.whose())
	if disdel.KindOf(err) == disdel.NotFound { // it was deleted while a job of its runs
		return t.Quota, nil
	}
	return t.Quota, err
}

// SameToken tells whether two tokens are the same, in a time that does not tell how much of them is. No token is "".
func SameToken(a, b string) bool {
	return a != "" && b != "" && subtle.ConstantTimeCompare([]byte(hashOf(a)), []byte(hashOf(b))) == 1
}
