package couchlite

import (
	"cmp"
	"slices"
)

// mostDeleted is the most deleted documents that a database remembers, and fewestDeleted how many are left after a
// purge. CouchDB remembers them all, for replication, which this server lacks. The history deletes a lease for each
// job, so that its file would grow without end.
const (
	mostDeleted   = 256
	fewestDeleted = mostDeleted / 2
)

// purge forgets the oldest deleted documents if there are too many, and packs the catalog anew. A write with the
// revision of a forgotten document is still a conflict. The answer for its id becomes "missing".
func (c *catalog) purge() error {
	if c.head.Deleted <= mostDeleted {
		return nil
	}
	var all, deleted []entry
	err := c.walk(span{}, func(e *entry) (bool, error) {
		if e.deleted {
			deleted = append(deleted, *e)
		} else {
			all = append(all, *e)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(deleted, func(a, b entry) int { return cmp.Compare(b.seq, a.seq) })
	for _, e := range deleted[fewestDeleted:] {
		if err := c.docs.Delete([]byte(e.id)); err != nil {
			return err
		}
	}
	all = append(all, deleted[:fewestDeleted]...)
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.id, b.id) })
	c.segments, c.head.Live, c.head.Deleted, c.anew = nil, 0, 0, true
	for _, e := range all {
		if err := c.put(e); err != nil {
			return err
		}
	}
	return nil
}
