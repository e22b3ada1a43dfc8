package couchlite

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/boltcheck"
)

// catalog lists a database without its documents: ids in order, revisions, checksums, and a hash of every indexed
// field. It is written in the transaction that writes a document. Every read uses it, so a missing, exchanged or
// outdated document is detected by its checksum.
//
// Its head has the checksums of its segments and the sequence number of the database, which grows with every write.
// Earlier versions wrote files without a catalog, or leave an outdated sequence number. Then the catalog is built once
// from the documents.
type catalog struct {
	name     string
	docs     *bbolt.Bucket
	kept     *bbolt.Bucket // nil: the file has no catalogs yet
	head     catalogHead
	segments []segment
	anew     bool // its segments are none of those in the file
}

// catalogs is the bucket of all catalogs. No database can have this name.
const catalogs = "_catalog"

// segmentSize is the most documents in a segment. A save writes one segment and the head.
const segmentSize = 128

type catalogHead struct {
	Version  int           `json:"version"`
	Seq      uint64        `json:"seq"`
	Fields   []string      `json:"fields,omitempty"` // fields of all indexes, each once
	Indexes  []index       `json:"indexes,omitempty"`
	Live     int           `json:"live"`
	Deleted  int           `json:"gone"`
	Next     uint32        `json:"next"` // number of the next new segment
	Segments []segmentHead `json:"segments,omitempty"`
}

type segmentHead struct {
	Number uint32 `json:"n"`
	First  string `json:"first"` // id
	Sum    uint32 `json:"sum"`
}

type segment struct {
	segmentHead
	entries       []entry
	loaded, dirty bool
}

// entry describes a document.
type entry struct {
	id, rev string
	seq     uint64
	sum     uint32
	deleted bool
	marks   string // markSize bytes for each field
}

// index is an index that a client created.
type index struct {
	Name   string   `json:"name"`
	DDoc   string   `json:"ddoc"`
	Fields []string `json:"fields"`
}

func damaged(format string, args ...any) error {
	return &disdel.Error{Kind: disdel.Corrupt, Msg: fmt.Sprintf(format, args...)}
}

func headKey(name string) []byte { return append([]byte(name), 0) }

func segmentKey(name string, number uint32) []byte {
	return binary.BigEndian.AppendUint32(headKey(name), number)
}

// openCatalog reads the catalog of a database, or builds it from the documents.
func openCatalog(tx *bbolt.Tx, name string) (*catalog, error) {
	docs, err := database(tx, name)
	if err != nil {
		return nil, err
	}
	c := &catalog{name: name, docs: docs, kept: tx.Bucket([]byte(catalogs)), head: catalogHead{Version: 1}}
	var data []byte
	if c.kept != nil {
		data = c.kept.Get(headKey(name))
	}
	if data == nil {
		return c, c.build(nil)
	}
	if err := c.readHead(data); err != nil {
		return nil, err
	}
	switch now := docs.Sequence(); {
	case c.head.Seq > now:
		return nil, damaged("%s has %d writes, and its catalog knows of %d", name, now, c.head.Seq)
	case c.head.Seq < now:
		return c, c.rebuild(c.head.Fields) // an earlier version of disdel wrote meanwhile
	}
	return c, nil
}

func (c *catalog) readHead(data []byte) error {
	data, was, err := boltcheck.Open(headKey(c.name), data)
	if err == nil && !was {
		err = damaged("the catalog of %s has no checksum", c.name)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &c.head); err != nil {
		return damaged("the catalog of %s: %v", c.name, err)
	}
	c.segments = make([]segment, len(c.head.Segments))
	for i, s := range c.head.Segments {
		c.segments[i].segmentHead = s
	}
	return nil
}

// build builds the catalog from the documents. before is nil if there was none; then sealed documents are an error,
// because versions that seal also write catalogs.
func (c *catalog) build(before *catalog) error {
	c.segments, c.head.Live, c.head.Deleted, c.anew = nil, 0, 0, true
	last := ""
	return c.docs.ForEach(func(k, v []byte) error {
		d, was, err := parse(k, v)
		if err == nil && was && before == nil {
			err = damaged("the catalog of %s is missing", c.name)
		}
		if id := string(k); err == nil && last != "" && id <= last {
			err = damaged("%q comes after %q", id, last)
		} else {
			last = id
		}
		if err != nil {
			return err
		}
		return c.add(last, d, v)
	})
}

// rebuild builds the catalog again after an earlier version wrote documents, or for other fields.
func (c *catalog) rebuild(fields []string) error {
	before := &catalog{name: c.name, docs: c.docs, kept: c.kept, head: c.head, segments: c.segments}
	c.head.Fields = fields
	if err := c.build(before); err != nil {
		return err
	}
	return before.walk(span{}, func(old *entry) (bool, error) {
		now, found, err := c.find(old.id)
		if err == nil && (!found || now.sum != old.sum && now.seq <= before.head.Seq) {
			err = damaged("document %q is not what was written", old.id)
		}
		return true, err
	})
}

// add adds a document to the catalog.
func (c *catalog) add(id string, d stored, value []byte) error {
	e := entry{id: id, rev: d.Rev, seq: d.Seq, deleted: d.Deleted, sum: boltcheck.Sum([]byte(id), value)}
	if len(c.head.Fields) > 0 {
		var err error
		if e.marks, err = marksOf(d.Body, c.head.Fields); err != nil {
			return damaged("document %q: %v", id, err)
		}
	}
	return c.put(e)
}

// at is the index of the segment for an id.
func (c *catalog) at(id string) int {
	return max(0, sort.Search(len(c.segments), func(i int) bool { return c.segments[i].First > id })-1)
}

// load reads a segment's entries.
func (c *catalog) load(i int) ([]entry, error) {
	s := &c.segments[i]
	if s.loaded {
		return s.entries, nil
	}
	key := segmentKey(c.name, s.Number)
	data := c.kept.Get(key)
	if data == nil || boltcheck.Sum(key, data) != s.Sum {
		return nil, damaged("a part of the catalog of %s is not what was written", c.name)
	}
	payload, _, err := boltcheck.Open(key, data)
	if err != nil {
		return nil, err
	}
	if s.entries, err = decodeEntries(string(payload), len(c.head.Fields)); err != nil {
		return nil, err
	}
	s.loaded = true
	return s.entries, nil
}

func (c *catalog) find(id string) (entry, bool, error) {
	if len(c.segments) == 0 {
		return entry{}, false, nil
	}
	entries, err := c.load(c.at(id))
	if err != nil {
		return entry{}, false, err
	}
	k, found := slices.BinarySearchFunc(entries, id, byID)
	if !found {
		return entry{}, false, nil
	}
	return entries[k], true, nil
}

func byID(e entry, id string) int {
	switch {
	case e.id < id:
		return -1
	case e.id > id:
		return 1
	}
	return 0
}

// put replaces or inserts an entry.
func (c *catalog) put(e entry) error {
	if len(c.segments) == 0 {
		c.segments = []segment{c.newSegment(nil)}
	}
	i := c.at(e.id)
	entries, err := c.load(i)
	if err != nil {
		return err
	}
	k, found := slices.BinarySearchFunc(entries, e.id, byID)
	if found {
		c.count(entries[k], -1)
		entries[k] = e
	} else {
		entries = slices.Insert(entries, k, e)
	}
	c.count(e, 1)
	s := &c.segments[i]
	s.entries, s.dirty, s.First = entries, true, entries[0].id
	if len(entries) > segmentSize {
		c.split(i, k)
	}
	return nil
}

func (c *catalog) newSegment(entries []entry) segment {
	s := segment{segmentHead: segmentHead{Number: c.head.Next}, entries: entries, loaded: true, dirty: true}
	if len(entries) > 0 {
		s.First = entries[0].id
	}
	c.head.Next++
	return s
}

// split splits a segment after the insertion of entry k. An entry at the end gets a new segment, because ids usually
// ascend.
func (c *catalog) split(i, k int) {
	at := len(c.segments[i].entries) / 2
	if k == len(c.segments[i].entries)-1 {
		at = k
	}
	rest := slices.Clone(c.segments[i].entries[at:])
	c.segments[i].entries = c.segments[i].entries[:at]
	c.segments = slices.Insert(c.segments, i+1, c.newSegment(rest))
}

func (c *catalog) count(e entry, by int) {
	if e.deleted {
		c.head.Deleted += by
	} else {
		c.head.Live += by
	}
}

// span is a range of ids, including both ends; "" is open.
type span struct {
	low, high  string
	descending bool
}

func (s span) has(id string) bool { return id >= s.low && (s.high == "" || id <= s.high) }

// walk calls f with the entries of a range in order, including deleted documents, until f returns false.
func (c *catalog) walk(s span, f func(*entry) (bool, error)) error {
	if len(c.segments) == 0 {
		return nil
	}
	first, last, step := c.at(s.low), len(c.segments)-1, 1
	if s.high != "" {
		last = c.at(s.high)
	}
	if s.descending {
		first, last, step = last, first, -1
	}
	for i := first; (last-i)*step >= 0; i += step {
		entries, err := c.load(i)
		if err != nil {
			return err
		}
		for k := range entries {
			if s.descending {
				k = len(entries) - 1 - k
			}
			if !s.has(entries[k].id) {
				continue
			}
			if more, err := f(&entries[k]); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

// document reads the document of an entry and checks its checksum.
func (c *catalog) document(e *entry) (stored, error) {
	value := c.docs.Get([]byte(e.id))
	if value == nil {
		return stored{}, damaged("document %q is missing", e.id)
	}
	if boltcheck.Sum([]byte(e.id), value) != e.sum {
		return stored{}, damaged("document %q is not what was written", e.id)
	}
	d, _, err := parse([]byte(e.id), value)
	return d, err
}

// flush writes the changes.
func (c *catalog) flush(tx *bbolt.Tx) error {
	if err := c.purge(); err != nil {
		return err
	}
	kept, err := tx.CreateBucketIfNotExists([]byte(catalogs))
	if err != nil {
		return err
	}
	if c.anew {
		if err := dropCatalog(tx, c.name); err != nil {
			return err
		}
		c.anew = false
	}
	c.head.Seq, c.head.Segments = c.docs.Sequence(), make([]segmentHead, len(c.segments))
	for i := range c.segments {
		s := &c.segments[i]
		if s.dirty {
			key := segmentKey(c.name, s.Number)
			data := boltcheck.Seal(key, encodeEntries(s.entries))
			s.Sum = boltcheck.Sum(key, data)
			if err := kept.Put(key, data); err != nil {
				return err
			}
			s.dirty = false
		}
		c.head.Segments[i] = s.segmentHead
	}
	data, err := json.Marshal(c.head)
	if err != nil {
		return err
	}
	return kept.Put(headKey(c.name), boltcheck.Seal(headKey(c.name), data))
}

// dropCatalog deletes a database's catalog.
func dropCatalog(tx *bbolt.Tx, name string) error {
	kept := tx.Bucket([]byte(catalogs))
	if kept == nil {
		return nil
	}
	var keys [][]byte
	c, prefix := kept.Cursor(), headKey(name)
	for k, _ := c.Seek(prefix); k != nil && len(k) >= len(prefix) && string(k[:len(prefix)]) == string(prefix); k,
		_ = c.Next() {
		keys = append(keys, slices.Clone(k))
	}
	for _, k := range keys {
		if err := kept.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

func encodeEntries(list []entry) []byte {
	var out []byte
	for _, e := range list {
		out = binary.AppendUvarint(out, uint64(len(e.id)))
		out = append(out, e.id...)
		out = binary.AppendUvarint(out, uint64(len(e.rev)))
		out = append(out, e.rev...)
		out = binary.AppendUvarint(out, e.seq)
		out = binary.LittleEndian.AppendUint32(out, e.sum)
		out = append(out, byte(toInt(e.deleted)))
		out = append(out, e.marks...)
	}
	return out
}

// decodeEntries reads what encodeEntries wrote. The entries share memory with data.
func decodeEntries(data string, fields int) ([]entry, error) {
	out := make([]entry, 0, segmentSize)
	r := reader{rest: data}
	for r.rest != "" && !r.short {
		e := entry{id: r.text(), rev: r.text(), seq: r.number()}
		if sum := r.take(4); len(sum) == 4 {
			e.sum = uint32(sum[0]) | uint32(sum[1])<<8 | uint32(sum[2])<<16 | uint32(sum[3])<<24
		}
		e.deleted = r.take(1) == "\x01"
		e.marks = r.take(fields * markSize)
		out = append(out, e)
	}
	if r.short {
		return nil, damaged("a part of a catalog is cut short")
	}
	return out, nil
}

// reader splits a text.
type reader struct {
	rest  string
	short bool
}

func (r *reader) take(n int) string {
	if n < 0 || n > len(r.rest) {
		r.short = true
		return ""
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

func (r *reader) number() (v uint64) {
	for shift := 0; shift < 64; shift += 7 {
		b := r.take(1)
		if b == "" {
			return 0
		}
		v |= uint64(b[0]&0x7f) << shift
		if b[0] < 0x80 {
			return v
		}
	}
	r.short = true
	return 0
}

func (r *reader) text() string {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.short = true
		return ""
	}
	return r.take(int(n))
}

// A mark is a hash of a field's value in a catalog: equal values have equal marks. The mark of a missing field is zero.
const markSize = 8

var noMark = string(make([]byte, markSize))

func markOf(value any) string {
	data, err := json.Marshal(canonical(value))
	if err != nil {
		return noMark
	}
	sum := sha256.Sum256(data)
	sum[0] |= 1 // no value has the mark of a missing field
	return string(sum[:markSize])
}

// canonical makes equal numbers equal texts.
func canonical(v any) any {
	switch x := v.(type) {
	case json.Number:
		if f, err := x.Float64(); err == nil {
			return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
		}
		return x
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = canonical(x[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for k := range x {
			out[k] = canonical(x[k])
		}
		return out
	default:
		return v
	}
}

// marksOf are the marks of some fields of a body. It parses only these fields.
func marksOf(body []byte, fields []string) (string, error) {
	if len(body) == 0 {
		return strings.Repeat(noMark, len(fields)), nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		return "", err
	}
	known := map[string]any{}
	var out strings.Builder
	for _, path := range fields {
		top, rest, deeper := strings.Cut(path, ".")
		v, read := known[top]
		if text, there := raw[top]; there && !read {
			if err := decodeNumbers(text, &v); err != nil {
				return "", err
			}
			known[top] = v
		}
		_, there := raw[top]
		if there && deeper {
			v, there = field(v, rest)
		}
		if there {
			out.WriteString(markOf(v))
		} else {
			out.WriteString(noMark)
		}
	}
	return out.String(), nil
}

// decodeNumbers parses JSON and keeps the texts of numbers.
func decodeNumbers(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v)
}
