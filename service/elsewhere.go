package service

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/addresses"
)

// addresses is where this Service runs jobs, as flags of the command line without passwords. It is never nil. A part
// without an address is embedded.
func (s *core) addresses() []disdel.Option {
	out := []disdel.Option{}
	for _, o := range []disdel.Option{
		{Name: "apihost", Value: s.cfg.OpenWhisk.Host},
		{Name: "storage", Value: s.cfg.Storage},
		{Name: "redis", Value: addresses.WithoutPasswords(strings.Join(s.cfg.Redis, ","))},
		{Name: "redis-prefix", Value: s.cfg.RedisPrefix},
	} {
		if o.Value != "" {
			out = append(out, o)
		}
	}
	return out
}

// knowsPlace says whether the addresses that a job ran with are known: from its record, or from its lease where the
// record is a tenant's.
func knowsPlace(rec *disdel.Record, l history.Lease) bool { return rec.Place != nil || l.Place != nil }

// samePlace returns Conflict with CodeElsewhere if a job ran at other addresses than this Service's. It does not
// compare unknown addresses.
func (s *core) samePlace(rec *disdel.Record, l history.Lease) error {
	ran := addresses.PlaceOfRecord(rec)
	if rec.Place == nil && l.Place != nil {
		ran = l.Place
	}
	here := addresses.Place(s.addresses())
	d, differ := addresses.FirstDifference(ran, func(flag string) (string, bool) {
		now, _ := here.Value(flag)
		_, was := ran.Value(flag)
		return now, was || knowsPlace(rec, l)
	})
	if !differ {
		return nil
	}
	err := &disdel.Error{
		Kind: disdel.Conflict, Code: disdel.CodeElsewhere, Op: "resume job", Job: rec.ID,
		Msg:  fmt.Sprintf("job %s ran at another place than this server's", rec.ID),
		Hint: "to run the job at this place instead: disdel resume " + string(rec.ID) + " --move",
	}
	if rec.Tenant == "" { // tenants do not see the operator's addresses
		err.Msg = fmt.Sprintf("job %s ran on %s (--%s); this server uses %s", rec.ID,
			cmp.Or(d.Was, "the embedded part"), d.Flag, cmp.Or(d.Now, "the embedded part"))
	}
	return err
}
