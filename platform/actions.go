package platform

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/disdel/disdel"
)

type action struct {
	header
	Exec       execSpec   `json:"exec"`
	Parameters []keyValue `json:"parameters"`
	Limits     limits     `json:"limits"`
	invoker    string     // the namespace whose containers run it; "": its own
}

// sameAction tells whether a warm container of a can run b: both are equal, including the version.
func sameAction(a, b *action) bool { return a == b || reflect.DeepEqual(a, b) }

// actionsUnder lists the actions of a package, or of a namespace with all its packages.
func actionsUnder(t tx, path string) ([]*action, error) {
	var out []*action
	err := each(t, actions, path+"/", func(v *storedAction) { out = append(out, v.Action) })
	return out, err
}

// resolved is an action as a request reaches it: through a package or a binding, whose parameters it inherits.
type resolved struct {
	*action
	inherited []keyValue
	binding   string // the path of the binding; "": none
}

// resolve finds an action that the user may read and invoke.
func (p *Platform) resolve(t tx, u *user, path pathName) (*resolved, error) {
	ns, pkgName, name := path.split()
	out := &resolved{}
	key := path.key()
	if pkgName == "" && ns != u.Name {
		return nil, errForbidden(key)
	}
	if pkgName != "" {
		named, owner, params, err := resolvePackage(t, u, path.Path)
		if err != nil {
			return nil, err
		}
		out.inherited, key = params, owner.path()+"/"+name
		if named.bound() {
			out.binding = named.path()
		}
	}
	var err error
	if out.action, err = p.store.actionWithCode(t, key); err != nil {
		return nil, err
	}
	if out.action == nil {
		return nil, notFoundError(t, actions, key)
	}
	return out, nil
}

// actionPath is the action that a request's path names.
func (q *request) actionPath() pathName {
	if pkgName := q.PathValue("pkg"); pkgName != "" {
		return pathName{q.ns + "/" + pkgName, q.PathValue("name")}
	}
	return pathName{q.ns, q.PathValue("name")}
}

func (p *Platform) listActions(q *request) (int, any, error) {
	var list []*action
	err := p.store.view(func(t tx) (err error) {
		under := q.ns
		if name := q.PathValue("pkg"); name != "" {
			_, owner, _, err := resolvePackage(t, q.user, q.ns+"/"+name)
			if err != nil {
				return err
			}
			under = owner.path()
		}
		list, err = actionsUnder(t, under)
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	return listOf(q.Request, "actions", list, func(a *action) any {
		return struct {
			header
			Limits limits          `json:"limits"`
			Exec   map[string]bool `json:"exec"`
		}{a.header, a.Limits, map[string]bool{"binary": a.Exec.Binary}}
	})
}

func (p *Platform) getAction(q *request) (int, any, error) {
	var out struct {
		action
		Binding string `json:"binding,omitempty"` // the package binding in the request's path
	}
	err := p.store.view(func(t tx) error {
		found, err := p.resolve(t, q.user, q.actionPath())
		if err != nil {
			return err
		}
		out.action, out.Binding = *found.action, found.binding
		out.Parameters = mergeParameters(found.inherited, out.Parameters)
		return nil
	})
	if q.URL.Query().Has("code") && !flag(q.Request, "code") {
		out.Exec.Code, out.Exec.omitCode = "", true
	}
	return httpDone, &out, err
}

func (p *Platform) deleteAction(q *request) (int, any, error) {
	var a *action
	err := p.store.update(func(t tx) (err error) {
		if err := checkPackage(t, q); err != nil {
			return err
		}
		key := q.actionPath().key()
		if a, err = p.store.actionWithCode(t, key); err != nil {
			return err
		}
		if a == nil {
			return notFoundError(t, actions, key)
		}
		return p.store.dropAction(t, key)
	})
	if err == nil {
		p.pool.removeIdle(a)
	}
	return httpDone, a, err
}

// actionPut is the body of a PUT of an action.
type actionPut struct {
	headerPut
	Exec           *execPut   `json:"exec"`
	Parameters     *keyValues `json:"parameters"`
	Limits         *limitsPut `json:"limits"`
	DelAnnotations []string   `json:"delAnnotations"`
}

func (p *Platform) putAction(q *request) (int, any, error) {
	if err := checkName(q.PathValue("name")); err != nil {
		return 0, nil, err
	}
	var body actionPut
	l := &p.cfg.Limits
	leave, err := p.enterLarge(q)
	if err != nil {
		return 0, nil, err
	}
	err = readEntity(q.Request, 2*l.Code+l.bodyLimit(), "exec", &body)
	if leave(); err != nil {
		return 0, nil, err
	}
	var out *action
	err = p.store.update(func(t tx) error {
		path := q.actionPath()
		if err := checkPackage(t, q); err != nil {
			return err
		}
		old, err := p.store.actionWithCode(t, path.key())
		if err != nil {
			return err
		}
		if err := checkPut(t, actions, q, old != nil); err != nil {
			return err
		}
		if out, err = p.newAction(path, old, &body); err != nil {
			return err
		}
		if body.Exec != nil && out.Exec.Kind == sequenceKind {
			if err := p.checkSequence(t, q.user, out); err != nil {
				return err
			}
		}
		return t.putAction(out)
	})
	if err == nil && body.Exec != nil {
		p.warnCannotRun(out)
	}
	return httpDone, out, err
}

// A large body takes several times its size while it is read, so only a few are read at once.
const (
	largeBody      = 4 << 20
	maxLargeBodies = 2
)

// enterLarge waits until a large body may be read. leave lets the next one in.
func (p *Platform) enterLarge(q *request) (leave func(), err error) {
	if q.ContentLength >= 0 && q.ContentLength < largeBody {
		return func() {}, nil
	}
	select {
	case p.largeBodies <- struct{}{}:
		return func() { <-p.largeBodies }, nil
	case <-q.Context().Done():
		return nil, errBusy
	}
}

// checkPackage refuses changes of actions in a package that does not exist or is a binding.
func checkPackage(t tx, q *request) error {
	name := q.PathValue("pkg")
	if name == "" {
		return nil
	}
	owner, err := get[pkg](t, packages, q.ns+"/"+name)
	switch {
	case err != nil:
		return err
	case owner == nil:
		return errNoEntity
	case owner.bound():
		return errOnBinding
	}
	return nil
}

func (p *Platform) newAction(path pathName, old *action, body *actionPut) (*action, error) {
	a := p.actionDefaults(old)
	kept := a.Annotations
	var before *header
	if old != nil {
		before = &old.header
	}
	a.header = body.next(path.Path, path.Name, before)
	switch {
	case body.Exec != nil:
		var err error
		if a.Exec, err = p.newExec(body.Exec.execSpec); err != nil {
			return nil, err
		}
	case old == nil:
		return nil, errExecMissing
	}
	if body.Parameters != nil {
		a.Parameters = mergeParameters(*body.Parameters)
	}
	kept = slices.DeleteFunc(slices.Clone(kept),
		func(v keyValue) bool { return slices.Contains(body.DelAnnotations, v.Key) })
	if body.Annotations != nil {
		kept = mergeParameters(kept, *body.Annotations)
	}
	if old == nil {
		kept = mergeParameters([]keyValue{kv("provide-api-key", false)}, kept)
	}
	a.Annotations = mergeParameters(kept, []keyValue{kv("exec", a.Exec.Kind)})
	body.setLimits(&a.Limits)
	return a, p.cfg.Limits.checkAction(a)
}

// actionDefaults is what a PUT changes: a copy of the old action, or the defaults.
func (p *Platform) actionDefaults(old *action) *action {
	if old != nil {
		a := *old
		return &a
	}
	l := &p.cfg.Limits
	return &action{
		Parameters: []keyValue{},
		Limits: limits{
			Timeout: int(l.Timeout.Default.Milliseconds()), Memory: l.Memory.Default.MB(), Logs: l.LogsMB.Default,
			Concurrency: l.Concurrency.Default,
		},
	}
}

type limits struct {
	Timeout     int  `json:"timeout"` // ms
	Memory      int  `json:"memory"`  // MB
	Logs        int  `json:"logs"`    // MB
	Concurrency int  `json:"concurrency"`
	Instances   *int `json:"instances,omitempty"`
}

// limitsPut are the limits in a request. Missing limits keep their values.
type limitsPut struct{ Timeout, Memory, Logs, Concurrency, Instances *int }

// UnmarshalJSON reads limits and refuses bad ones with OpenWhisk's texts.
func (l *limitsPut) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return errFieldObject("timeout")
	}
	for _, f := range []struct {
		name, noun string
		to         **int
	}{
		{"timeout", "time", &l.Timeout},
		{"memory", "memory", &l.Memory},
		{"logs", "log", &l.Logs},
		{"concurrency", "concurrency", &l.Concurrency},
		{"instances", "instances", &l.Instances},
	} {
		text := fields[f.name]
		if len(text) == 0 || string(text) == "null" {
			continue
		}
		var n float64
		switch {
		case json.Unmarshal(text, &n) != nil:
			return errLimitMalformed(f.noun)
		case n != math.Trunc(n) || math.Abs(n) > math.MaxInt32:
			return errLimitFraction(f.noun)
		case n < 0 && (f.name == "logs" || f.name == "memory"):
			return errSizeNegative
		}
		*f.to = new(int(n))
	}
	return nil
}

func (b *actionPut) setLimits(l *limits) {
	n := b.Limits
	if n == nil {
		return
	}
	for _, set := range []struct{ to, from *int }{
		{&l.Timeout, n.Timeout},
		{&l.Memory, n.Memory},
		{&l.Logs, n.Logs},
		{&l.Concurrency, n.Concurrency},
	} {
		if set.from != nil {
			*set.to = *set.from
		}
	}
	if n.Instances != nil {
		l.Instances = n.Instances
	}
}

func (l *Limits) checkAction(a *action) error {
	if err := l.checkSize("parameters", a.Parameters); err != nil {
		return err
	}
	// those of the request, without the platform's own
	own := slices.DeleteFunc(slices.Clone(a.Annotations), func(v keyValue) bool {
		return v.Key == "exec" || v.Key == "provide-api-key"
	})
	if err := l.checkSize("annotations", own); err != nil {
		return err
	}
	return l.check(a.Limits)
}

// check refuses limits outside the platform's.
func (l *Limits) check(v limits) error {
	for _, c := range []struct {
		what             string
		value, low, high int
		unit             string
	}{
		{"memory size", v.Memory, l.Memory.Min.MB(), l.Memory.Max.MB(), " MB"},
		{"duration", v.Timeout, int(l.Timeout.Min.Milliseconds()), int(l.Timeout.Max.Milliseconds()), " milliseconds"},
		{"log size", v.Logs, l.LogsMB.Min, l.LogsMB.Max, " MB"},
		{"concurrency", v.Concurrency, l.Concurrency.Min, l.Concurrency.Max, ""},
	} {
		if c.value > c.high {
			return errLimitAbove(c.what, c.value, c.high, c.unit)
		}
		if c.value < c.low {
			return errLimitBelow(c.what, c.value, c.low, c.unit)
		}
	}
	return nil
}

// sequenceKind is the kind of actions that run other actions in a row.
const sequenceKind = "sequence"

type execSpec struct {
	Kind       string   `json:"kind"`
	Code       string   `json:"code,omitempty"`
	Main       string   `json:"main,omitempty"`
	Image      string   `json:"image,omitempty"`
	Binary     bool     `json:"binary"`
	Components []string `json:"components,omitempty"` // actions of a sequence, as /ns/pkg/action

	hasCode  bool // the request has the field code, which may be empty
	omitCode bool // the answer has no code
}

// MarshalJSON omits the field binary for sequences, which have no code (OpenWhisk's SequenceExec). An action of a kind
// always has the field code, even if it is empty; an image may have none.
func (e execSpec) MarshalJSON() ([]byte, error) {
	type plain execSpec
	switch {
	case e.Kind != sequenceKind && (e.Kind == blackbox || e.omitCode || e.Code != ""):
		return json.Marshal(plain(e))
	case e.Kind != sequenceKind:
		return json.Marshal(struct {
			plain
			Code string `json:"code"`
		}{plain: plain(e)})
	}
	return json.Marshal(struct {
		Kind       string   `json:"kind"`
		Components []string `json:"components"`
	}{e.Kind, e.Components})
}

// execPut is the field exec of a request.
type execPut struct{ execSpec }

// UnmarshalJSON checks the fields that each kind needs, in OpenWhisk's order and with its texts.
func (e *execPut) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return errNotAnObject
	}
	if json.Unmarshal(fields["kind"], &e.Kind) != nil || e.Kind == "" {
		return errKindMissing
	}
	e.Kind = strings.ToLower(strings.TrimSpace(e.Kind))
	switch e.Kind {
	case sequenceKind:
		if json.Unmarshal(fields["components"], &e.Components) != nil {
			return errComponentsMissing
		}
		return nil
	case blackbox:
		if json.Unmarshal(fields["image"], &e.Image) != nil || e.Image == "" {
			return errImageMissing
		}
		if !imageName().MatchString(e.Image) {
			return errImageName
		}
	default:
		json.Unmarshal(fields["image"], &e.Image) //nolint:errcheck // only images need it
	}
	if code, ok := fields["code"]; ok {
		if json.Unmarshal(code, &e.Code) != nil {
			return errAttachment(code)
		}
		e.hasCode = true
	}
	json.Unmarshal(fields["main"], &e.Main) //nolint:errcheck // OpenWhisk takes no other type for one either
	return nil
}

// imageName is a container image: an optional registry, a lower-case path, an optional tag.
var imageName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([\w.-]+(:\d+)?/)?` +
		`[a-z0-9]+([._/-][a-z0-9]+)*(:[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)
})

func family(kind string) string {
	name, _, _ := strings.Cut(kind, ":")
	return name
}

// kindNames are the kinds that an action may name.
func (p *Platform) kindNames() []string {
	unlisted := func(name string) bool { return p.cfg.Kinds[name].Unlisted }
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.cfg.Kinds)), unlisted)
}

// kindOf is the kind whose containers run an action: its own, or the one that stands for its image. It returns false if
// no kind stands for the image, like a cluster that cannot pull it. Only an action of another platform has such an
// image.
func (c *Config) kindOf(e *execSpec) (kind string, ok bool) {
	if e.Kind != blackbox {
		return e.Kind, true
	}
	kind, ok = c.Images[e.Image]
	return kind, ok
}

// resolveKind replaces FAMILY:default by the default kind of the family.
func (p *Platform) resolveKind(kind string) string {
	name, ok := strings.CutSuffix(kind, ":default")
	if !ok {
		return kind
	}
	found := kind
	for _, k := range p.kindNames() {
		if family(k) != name {
			continue
		}
		if p.cfg.Kinds[k].Default {
			return k
		}
		found = k
	}
	return found
}

// newExec checks what an action runs. checkSequence checks the components of a sequence, because it can read actions.
func (p *Platform) newExec(e execSpec) (execSpec, error) {
	if size := disdel.Bytes(len(e.Code)); size > p.cfg.Limits.Code {
		return e, errTooLarge("exec", int64(size), p.cfg.Limits.Code)
	}
	if e.Kind == sequenceKind {
		return execSpec{Kind: sequenceKind, Components: e.Components}, nil
	}
	e.Kind, e.Components = p.resolveKind(e.Kind), nil
	if !slices.Contains(p.kindNames(), e.Kind) && e.Kind != blackbox {
		return e, errKind(e.Kind, p.kindNames())
	}
	kind, ok := p.cfg.kindOf(&e)
	if !ok {
		return e, errImage(e.Image, slices.Sorted(maps.Keys(p.cfg.Images)), p.kindNames())
	}
	if why := p.userOfKind(kind).Refused; why != "" {
		return e, errKindRefused(e.Kind, why)
	}
	if !e.hasCode && e.Image == "" {
		return e, errCodeMissing(e.Kind)
	}
	_, err := base64.StdEncoding.DecodeString(e.Code)
	e.Binary, e.hasCode = err == nil && e.Code != "", false
	return e, nil
}

// warnCannotRun logs why a new action cannot start here. Like OpenWhisk, the API accepts such an action; the log tells
// the person who runs the platform before the first invocation.
func (p *Platform) warnCannotRun(a *action) {
	needs := startFiles[family(a.Exec.Kind)]
	if !a.Exec.Binary || needs == nil {
		return
	}
	if err := checkArchive(a.Exec.Code, needs); err != nil {
		p.cfg.Logger.WithField("action", a.path()).WithError(err).Warn("the new action cannot run here")
	}
}

// startFiles are the files of which an archive needs one, by family of kinds.
var startFiles = map[string][]string{
	"python": {"__main__.py"},
	"nodejs": {"package.json", "index.js", "index.mjs"},
}

// checkArchive looks for a start file in a zip archive. Code that is not an archive passes.
func checkArchive(code string, needs []string) error {
	data, err := base64.StdEncoding.DecodeString(code)
	if err != nil || !bytes.HasPrefix(data, []byte("PK")) {
		return nil
	}
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return errors.New("its archive cannot be read: " + err.Error())
	}
	if slices.ContainsFunc(archive.File, func(f *zip.File) bool { return slices.Contains(needs, f.Name) }) {
		return nil
	}
	return errors.New("its archive has no file that it can start with")
}
