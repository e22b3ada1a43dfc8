package tenant

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/history"
)

// ItemKind is the kind of an item that a tenant can share.
type ItemKind string

// The kinds of items.
const (
	ItemDataset ItemKind = "dataset"
	ItemModel   ItemKind = "model" // with all its versions
	ItemJob     ItemKind = "job"
)

// HomeOwner names the owner of what no tenant owns: the home of the server. No tenant can have this name.
const HomeOwner = "home"

// Item is a data set, a model or a job.
type Item struct {
	Kind  ItemKind `json:"kind"`
	Owner string   `json:"owner"` // a tenant, or HomeOwner
	Name  string   `json:"name"`  // of a job, its id
}

// Share says who may read an item besides its owner. The zero value of With and All: nobody.
type Share struct {
	Kind    ItemKind  `json:"kind"`
	Name    string    `json:"name"`
	With    []string  `json:"with"` // tenants, sorted, each once
	All     bool      `json:"all"`  // every tenant, also one that is created later
	Changed time.Time `json:"changed,omitzero"`
}

// Allows reports whether a tenant may read the item.
func (s *Share) Allows(tenant string) bool { return s.All || slices.Contains(s.With, tenant) }

// shared is all shares of one owner, as the history keeps them. An item that is not shared has no element.
type shared struct {
	Shares []Share `json:"shares"`
}

func (s *shared) find(kind ItemKind, name string) int {
	return slices.IndexFunc(s.Shares, func(one Share) bool { return one.Kind == kind && one.Name == name })
}

// mostShares bounds the items that one owner shares.
const mostShares = 10_000

// Share lets more tenants read an item: those named, and every tenant if all is set. It returns the share as it is
// then. It does not check that the item exists. It returns NotFound for an unknown tenant, and Invalid for the owner
// itself.
func (r *Registry) Share(ctx context.Context, item Item, with []string, all bool) (out Share, err error) {
	for _, name := range with {
		if _, err := r.find(ctx, name); disdel.KindOf(err) == disdel.NotFound || !tenantName.MatchString(name) {
			return out, &disdel.Error{
				Kind: disdel.NotFound, Op: "share", Msg: fmt.Sprintf("there is no tenant %.80q", name),
				Hint: "ask whoever runs the server for the names of the tenants",
			}
		} else if err != nil {
			return out, err
		}
		if name == item.Owner {
			return out, &disdel.Error{
				Kind: disdel.Invalid, Op: "share", Msg: fmt.Sprintf("%s owns the %s already", name, item.Kind),
				Hint: "name other tenants",
			}
		}
	}
	return r.changeShare(ctx, item, func(s *Share) error {
		s.With, s.All = append(s.With, with...), s.All || all
		return nil
	})
}

// Unshare takes the right to read an item back: from the tenants named; with all, from those that have it only because
// every tenant has it; with neither, from everybody. It returns the share as it is then. It returns Conflict for a
// named tenant that can read the item because every tenant can.
func (r *Registry) Unshare(ctx context.Context, item Item, from []string, all bool) (Share, error) {
	return r.changeShare(ctx, item, func(s *Share) error {
		if len(from) == 0 && !all {
			s.With, s.All = nil, false
			return nil
		}
		if s.All && !all {
			return &disdel.Error{
				Kind: disdel.Conflict, Op: "unshare",
				Msg:  fmt.Sprintf("%s %s is shared with all tenants, so %s would still see it", item.Kind, item.Name, from[0]),
				Hint: "add --all, which leaves the tenants that were named",
			}
		}
		s.All = s.All && !all
		s.With = slices.DeleteFunc(s.With, func(name string) bool { return slices.Contains(from, name) })
		return nil
	})
}

// unshareAll takes back from a tenant what others share with it by name.
func (r *Registry) unshareAll(ctx context.Context, h *history.Store, name string) error {
	notes, err := h.Notes(ctx, history.NoteShare)
	if err != nil {
		return err
	}
	for _, n := range notes {
		var list shared
		if err := json.Unmarshal(n.Value, &list); err != nil {
			return &disdel.Error{Kind: disdel.Corrupt, Op: "read shares", Msg: n.Name, Err: err}
		}
		for _, one := range list.Shares {
			if !slices.Contains(one.With, name) {
				continue
			}
			item := Item{Kind: one.Kind, Owner: n.Name, Name: one.Name}
			_, err := r.changeShare(ctx, item, func(s *Share) error {
				s.With = slices.DeleteFunc(s.With, func(with string) bool { return with == name })
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// changeShare changes a share. Others may change shares of the same owner at the same time.
func (r *Registry) changeShare(ctx context.Context, item Item, change func(*Share) error) (out Share, err error) {
	h, err := r.history(ctx)
	if err != nil {
		return out, err
	}
	for range mostWrites {
		n, list, err := sharesOf(ctx, h, item.Owner)
		if err != nil {
			return out, err
		}
		i := list.find(item.Kind, item.Name)
		out = Share{Kind: item.Kind, Name: item.Name}
		if i >= 0 {
			out = list.Shares[i]
			list.Shares = slices.Delete(list.Shares, i, i+1)
		}
		if err := change(&out); err != nil {
			return out, err
		}
		out.With = append([]string{}, slices.Compact(slices.Sorted(slices.Values(out.With)))...)
		if len(out.With) > 0 || out.All {
			out.Changed = time.Now().UTC().Round(time.Second)
			list.Shares = append(list.Shares, out)
		} else if i < 0 {
			return out, nil
		}
		if len(list.Shares) > mostShares {
			return out, &disdel.Error{
				Kind: disdel.OverLimit, Op: "share", Msg: fmt.Sprintf("%s shares %d items, and that is the most", item.Owner,
					mostShares), Hint: "unshare some first",
			}
		}
		if n.Value, err = json.Marshal(list); err != nil {
			return out, err
		}
		if _, err = h.WriteNote(ctx, n); disdel.KindOf(err) != disdel.Conflict {
			return out, err
		}
	}
	return out, &disdel.Error{Kind: disdel.Conflict, Op: "share", Msg: item.Name, Hint: "try again"}
}

// sharesOf reads the shares of an owner.
func sharesOf(ctx context.Context, h *history.Store, owner string) (n history.Note, list shared, err error) {
	n, err = h.Note(ctx, history.NoteShare, owner)
	if disdel.KindOf(err) == disdel.NotFound {
		return n, list, nil
	}
	if err == nil {
		err = json.Unmarshal(n.Value, &list)
	}
	return n, list, err
}

// ShareOf returns who may read an item besides its owner.
func (r *Registry) ShareOf(ctx context.Context, item Item) (Share, error) {
	none := Share{Kind: item.Kind, Name: item.Name, With: []string{}}
	h, err := r.history(ctx)
	if err != nil || !tenantName.MatchString(item.Owner) {
		return none, err
	}
	_, list, err := sharesOf(ctx, h, item.Owner)
	if i := list.find(item.Kind, item.Name); err == nil && i >= 0 {
		return list.Shares[i], nil
	}
	return none, err
}

// Shares lists what an owner shares.
func (r *Registry) Shares(ctx context.Context, owner string) ([]Share, error) {
	h, err := r.history(ctx)
	if err != nil {
		return nil, err
	}
	_, list, err := sharesOf(ctx, h, owner)
	return list.Shares, err
}

// SharedWith lists the items of a kind that others share with a tenant, by owner and name.
func (r *Registry) SharedWith(ctx context.Context, tenant string, kind ItemKind) (out []Item, err error) {
	h, err := r.history(ctx)
	if err != nil {
		return nil, err
	}
	notes, err := h.Notes(ctx, history.NoteShare)
	for _, n := range notes {
		var list shared
		if n.Name == tenant {
			continue
		}
		if err := json.Unmarshal(n.Value, &list); err != nil {
			return nil, &disdel.Error{Kind: disdel.Corrupt, Op: "read shares", Msg: n.Name, Err: err}
		}
		slices.SortFunc(list.Shares, func(a, b Share) int { return strings.Compare(a.Name, b.Name) })
		for _, s := range list.Shares {
			if s.Kind == kind && s.Allows(tenant) {
				out = append(out, Item{Kind: kind, Owner: n.Name, Name: s.Name})
			}
		}
	}
	return out, err
}
