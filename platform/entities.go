package platform

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel"
)

// keyValue is one parameter or annotation.
type keyValue struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
	Init  bool            `json:"init,omitempty"`
}

// keyValues are the parameters or annotations in a request.
type keyValues []keyValue

// UnmarshalJSON reads a list of objects with a key and a value.
func (l *keyValues) UnmarshalJSON(data []byte) error {
	var list []map[string]json.RawMessage
	if json.Unmarshal(data, &list) != nil {
		return errParameters
	}
	*l = make(keyValues, 0, len(list))
	for _, entry := range list {
		var v keyValue
		value, has := entry["value"]
		if !has || json.Unmarshal(entry["key"], &v.Key) != nil || v.Key == "" {
			return errParameters
		}
		v.Value = value
		if init, ok := entry["init"]; ok && json.Unmarshal(init, &v.Init) != nil {
			return errParameters
		}
		*l = append(*l, v)
	}
	return nil
}

func kv(key string, value any) keyValue {
	data, _ := json.Marshal(value) // plain data
	return keyValue{Key: key, Value: data}
}

// header has the fields that every entity has.
type header struct {
	Namespace   string     `json:"namespace"`
	Name        string     `json:"name"`
	Version     string     `json:"version"`
	Publish     bool       `json:"publish"`
	Annotations []keyValue `json:"annotations"`
	Updated     int64      `json:"updated"`
}

// path is the full name: ns/name, or ns/pkg/name for an action in a package.
func (h *header) path() string { return h.Namespace + "/" + h.Name }

func (h *header) changed() int64 { return h.Updated }

// headerPut is the part that every PUT body has. Missing fields keep the old value or get the default.
type headerPut struct {
	Version     *version   `json:"version"`
	Publish     *bool      `json:"publish"`
	Annotations *keyValues `json:"annotations"`
}

// next is the header after a PUT. old is nil if the entity is new.
func (b *headerPut) next(ns, name string, old *header) header {
	h := header{Namespace: ns, Name: name, Version: "0.0.1", Annotations: []keyValue{}}
	if old != nil {
		h = *old
		h.Version = nextVersion(old.Version)
	}
	h.Updated = time.Now().UnixMilli()
	if b.Version != nil {
		h.Version = string(*b.Version)
	}
	if b.Publish != nil {
		h.Publish = *b.Publish
	}
	if b.Annotations != nil {
		h.Annotations = mergeParameters(*b.Annotations)
	}
	return h
}

// version is major.minor.patch. OpenWhisk accepts "1.0" too.
type version string

func (v *version) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return errVersion
	}
	var n [3]int
	parts := strings.Split(text, ".")
	for i, part := range parts {
		if i >= len(n) {
			return errVersion
		}
		if _, err := fmt.Sscanf(part, "%d", &n[i]); err != nil || n[i] < 0 {
			return errVersion
		}
	}
	*v = version(fmt.Sprintf("%d.%d.%d", n[0], n[1], n[2]))
	return nil
}

func nextVersion(v string) string {
	var major, minor, patch int
	if _, err := fmt.Sscanf(v, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return "0.0.1"
	}
	return fmt.Sprintf("%d.%d.%d", major, minor, patch+1)
}

// maxName is the longest name, in bytes.
const maxName = 256

var entityName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A([\w]|[\w][\w@ .&-]{0,254}[\w@.&-])\z`)
})

func checkName(name string) error {
	if len(name) > maxName {
		return errNameLong(len(name))
	}
	if !entityName().MatchString(name) {
		return errNameIllegal
	}
	return nil
}

// pathName is an entity's name as rules store it. It is read from /ns/name, /ns/pkg/name or its own form.
type pathName struct {
	Path string `json:"path"`
	Name string `json:"name"`
}

func (n pathName) key() string { return n.Path + "/" + n.Name }

// parsePath reads a fully qualified name. The namespace _ means ns.
func parsePath(text, ns string) (pathName, error) {
	parts := strings.Split(strings.TrimPrefix(text, "/"), "/")
	if len(parts) < 2 || len(parts) > 3 {
		return pathName{}, errNotQualified
	}
	if parts[0] == "_" {
		parts[0] = ns
	}
	for _, part := range parts {
		if err := checkName(part); err != nil {
			return pathName{}, err
		}
	}
	last := len(parts) - 1
	return pathName{strings.Join(parts[:last], "/"), parts[last]}, nil
}

// split returns the namespace, the package ("" for none) and the name.
func (n pathName) split() (ns, pkgName, name string) {
	ns, pkgName, _ = strings.Cut(n.Path, "/")
	return ns, pkgName, n.Name
}

// mergeParameters merges lists; later lists win.
func mergeParameters(lists ...[]keyValue) []keyValue {
	out := []keyValue{}
	for _, l := range lists {
		for _, v := range l {
			if i := slices.IndexFunc(out, func(o keyValue) bool { return o.Key == v.Key }); i >= 0 {
				out[i] = v
			} else {
				out = append(out, v)
			}
		}
	}
	return out
}

// checkSize refuses parameters or annotations that are too large together.
func (l *Limits) checkSize(what string, list []keyValue) error {
	size := 0
	for _, v := range list {
		size += len(v.Key) + len(v.Value)
	}
	if disdel.Bytes(size) > l.Parameters {
		return errTooLarge(what, int64(size), l.Parameters)
	}
	return nil
}

// bodyLimit bounds the bodies of entities without code: parameters and annotations, with any white space and escapes.
func (l *Limits) bodyLimit() disdel.Bytes { return 4*l.Parameters + disdel.MB }

// notFoundError is the refusal of an entity that is not in its collection. Actions, packages, triggers and rules of a
// namespace share one space of names.
func notFoundError(t tx, b bucket, key string) error {
	if taken, err := isNameTaken(t, b, key); err != nil || taken {
		return cmp.Or(err, error(errOtherKind))
	}
	return errNoEntity
}

// checkPut refuses a PUT over an entity of another kind, or over one of the same kind without overwrite.
func checkPut(t tx, b bucket, q *request, exists bool) error {
	switch {
	case exists && !flag(q.Request, "overwrite"):
		return errExists
	case exists:
		return nil
	}
	taken, err := isNameTaken(t, b, q.resource())
	if err == nil && taken {
		err = errOtherKind
	}
	return err
}

func isNameTaken(t tx, b bucket, key string) (bool, error) {
	for _, other := range []bucket{actions, packages, triggers, rules} {
		if other == b {
			continue
		}
		if v, err := get[json.RawMessage](t, other, key); v != nil || err != nil {
			return v != nil, err
		}
	}
	return false, nil
}
