package tenant

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
)

// TokenInfo describes a token. It has no secret: nobody can compute the token from its hash.
type TokenInfo struct {
	Name    string    `json:"name,omitempty"` // unique among the tenant's tokens; "": Label has another one
	Role    Role      `json:"role"`
	Created time.Time `json:"created"`
	Used    time.Time `json:"used,omitzero"` // about the last sign-in, see usedEvery; zero: never
	Hash    string    `json:"sha256"`
}

// shortHash is how many hex digits of a hash identify a token without a name.
const shortHash = 8

// Label is the token's name, or else the start of its hash.
func (t *TokenInfo) Label() string { return cmp.Or(t.Name, t.Hash[:min(shortHash, len(t.Hash))]) }

// newToken makes a token of a tenant, and its description. It returns Invalid for a name or role that there cannot be.
func newToken(tenant, name string, role Role) (token string, made TokenInfo, err error) {
	if !role.Allows(RoleRead) {
		return "", made, &disdel.Error{
			Kind: disdel.Invalid, Op: "create token", Msg: fmt.Sprintf("there is no role %.80q", role),
			Hint: "use read, submit or admin",
		}
	}
	if name != "" && !tenantName.MatchString(name) {
		return "", made, &disdel.Error{
			Kind: disdel.Invalid, Op: "create token", Msg: fmt.Sprintf("%.80q is not a name for a token", name),
			Hint: "use at most 40 small letters, digits and dashes",
		}
	}
	secret := make([]byte, 32)
	rand.Read(secret)
	token = strings.Join([]string{tokenPrefix, tenant, hex.EncodeToString(secret)}, "_")
	return token, TokenInfo{Name: name, Role: role, Created: time.Now().UTC().Round(time.Second), Hash: hashOf(token)}, nil
}

// CreateToken makes one more token for a tenant. Only the caller learns the token. name may be "". CreateToken returns
// NotFound for an unknown tenant, Conflict for a name that another token has, and Invalid as Create.
func (r *Registry) CreateToken(ctx context.Context, tenant, name string, role Role) (token string, made TokenInfo,
	err error,
) {
	token, made, err = newToken(tenant, name, role)
	if err != nil {
		return "", made, err
	}
	err = r.change(ctx, tenant, func(t *Info, known bool) error {
		if !known {
			return noTenant(tenant)
		}
		if slices.ContainsFunc(t.Tokens, func(o TokenInfo) bool { return o.Label() == made.Label() }) {
			return &disdel.Error{
				Kind: disdel.Conflict, Op: "create token", Msg: fmt.Sprintf("%s has a token %s already", tenant, made.Label()),
				Hint: fmt.Sprintf("choose another --name, or revoke it: disdel tenant token revoke %s %s", tenant, made.Label()),
			}
		}
		t.Tokens = append(t.Tokens, made)
		return nil
	})
	if err != nil {
		return "", made, err
	}
	r.tokenChanged("a token was made", tenant, made)
	return token, made, nil
}

// Tokens lists the tokens of a tenant, the oldest first. It returns NotFound for an unknown tenant.
func (r *Registry) Tokens(ctx context.Context, tenant string) ([]TokenInfo, error) {
	t, err := r.find(ctx, tenant)
	if disdel.KindOf(err) == disdel.NotFound {
		return nil, noTenant(tenant)
	}
	return t.Tokens, err
}

// RevokeToken takes one token of a tenant back. name is its name or the start of its hash. The tenant keeps its other
// tokens. RevokeToken returns NotFound, and Invalid for a name that several tokens have.
func (r *Registry) RevokeToken(ctx context.Context, tenant, name string) (gone TokenInfo, err error) {
	err = r.change(ctx, tenant, func(t *Info, known bool) error {
		if !known {
			return noTenant(tenant)
		}
		i, err := t.token(name)
		if err != nil {
			return err
		}
		gone = t.Tokens[i]
		t.Tokens = slices.Delete(t.Tokens, i, i+1)
		return nil
	})
	if err == nil {
		r.tokenChanged("a token was revoked", tenant, gone)
	}
	return gone, err
}

// token finds a token by its name or the start of its hash.
func (t *Info) token(name string) (int, error) {
	found := -1
	for i, token := range t.Tokens {
		if token.Name == name && name != "" {
			return i, nil
		}
		if len(name) < shortHash || !strings.HasPrefix(token.Hash, name) {
			continue
		}
		if found >= 0 {
			return -1, &disdel.Error{
				Kind: disdel.Invalid, Op: "find token", Msg: fmt.Sprintf("several tokens of %s begin with %s", t.Name, name),
				Hint: "write more digits of its hash",
			}
		}
		found = i
	}
	if found < 0 {
		return -1, &disdel.Error{
			Kind: disdel.NotFound, Op: "find token", Msg: fmt.Sprintf("%s has no token %.80q", t.Name, name),
			Hint: "disdel tenant token list " + t.Name + " shows all tokens",
		}
	}
	return found, nil
}

// tokenChanged logs that a token was made or revoked, also in the audit log.
func (r *Registry) tokenChanged(what, tenant string, t TokenInfo) {
	r.log.WithFields(logrus.Fields{"tenant": tenant, "role": string(t.Role), "token": t.Label()}).Info(what)
	r.write(AuditLine{Event: AuditToken, Tenant: tenant, Role: t.Role, Token: t.Label(), What: what})
}

// usedEvery bounds how often the time of the last sign-in of a token is written.
const usedEvery = 10 * time.Minute

// uses remembers when the last sign-in of each token was written.
type uses struct {
	mu      sync.Mutex
	written map[string]time.Time // guarded by mu: by the token's hash
}

// due reports whether a sign-in at this time has to be written, and takes it as written.
func (u *uses) due(t TokenInfo, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	last := t.Used
	if w := u.written[t.Hash]; w.After(last) {
		last = w
	}
	if now.Sub(last) < usedEvery {
		return false
	}
	if u.written == nil {
		u.written = map[string]time.Time{}
	}
	u.written[t.Hash] = now
	return true
}

// used writes that a token has signed in. A failure is only logged: the token is valid.
func (r *Registry) used(ctx context.Context, tenant string, token TokenInfo) {
	now := time.Now().UTC().Round(time.Second)
	if !r.uses.due(token, now) {
		return
	}
	err := r.change(ctx, tenant, func(t *Info, known bool) error {
		i := slices.IndexFunc(t.Tokens, func(o TokenInfo) bool { return o.Hash == token.Hash })
		if !known || i < 0 { // it was revoked meanwhile
			return noTenant(tenant)
		}
		t.Tokens[i].Used = now
		return nil
	})
	if err != nil && disdel.KindOf(err) != disdel.NotFound {
		r.log.WithError(err).WithField("tenant", tenant).Warn("the time of a sign-in was not written")
	}
}
