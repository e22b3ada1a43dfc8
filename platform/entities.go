package platform

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// keyValue is OpenWhisk's form of parameters and annotations.
type keyValue struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

func kv(key string, value any) keyValue {
	data, _ := json.Marshal(value) // plain data
	return keyValue{key, data}
}

type limits struct {
	Timeout     int `json:"timeout"` // ms
	Memory      int `json:"memory"`  // MB
	Logs        int `json:"logs"`    // MB
	Concurrency int `json:"concurrency"`
}

type execSpec struct {
	Kind   string `json:"kind"`
	Code   string `json:"code,omitempty"`
	Main   string `json:"main,omitempty"`
	Image  string `json:"image,omitempty"`
	Binary bool   `json:"binary"`
}

type action struct {
	Namespace   string     `json:"namespace"`
	Name        string     `json:"name"`
	Version     string     `json:"version"`
	Publish     bool       `json:"publish"`
	Exec        execSpec   `json:"exec"`
	Parameters  []keyValue `json:"parameters"`
	Limits      limits     `json:"limits"`
	Annotations []keyValue `json:"annotations"`
	Updated     int64      `json:"updated"`
}

// path is the name that annotations and the environment carry: ns/pkg/action.
func (a *action) path() string { return a.Namespace + "/" + a.Name }

type pkg struct {
	Namespace   string          `json:"namespace"`
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Publish     bool            `json:"publish"`
	Binding     json.RawMessage `json:"binding"`
	Parameters  []keyValue      `json:"parameters"`
	Annotations []keyValue      `json:"annotations"`
	Updated     int64           `json:"updated"`
}

var entityName = regexp.MustCompile(`\A([\w]|[\w][\w@ .&-]{0,254}[\w@.&-])\z`)

func nextVersion(v string) string {
	var major, minor, patch int
	if _, err := fmt.Sscanf(v, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return "0.0.1"
	}
	return fmt.Sprintf("%d.%d.%d", major, minor, patch+1)
}

func (p *Platform) listPackages(r *http.Request) (int, any, error) {
	limit, skip, err := page(r)
	if err != nil {
		return 0, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]*pkg, 0, len(p.packages))
	for _, v := range p.packages {
		out = append(out, v)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Updated > out[j].Updated })
	if flag(r, "count") {
		return 200, map[string]int{"packages": len(out)}, nil
	}
	return 200, cut(out, limit, skip), nil
}

func (p *Platform) getPackage(r *http.Request) (int, any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.packages[r.PathValue("name")]
	if !ok {
		return 0, nil, problem{404, textNoEntity}
	}
	type member struct {
		Name        string     `json:"name"`
		Version     string     `json:"version"`
		Annotations []keyValue `json:"annotations"`
	}
	members := []member{}
	for _, a := range p.actionsOf(v.Name) {
		members = append(members, member{a.Name, a.Version, a.Annotations})
	}
	return 200, struct {
		*pkg
		Actions []member `json:"actions"`
		Feeds   []any    `json:"feeds"`
	}{v, members, []any{}}, nil
}

// actionsOf lists a package's actions, newest first; the caller holds the lock.
func (p *Platform) actionsOf(name string) []*action {
	var out []*action
	for _, a := range p.actions {
		if a.Namespace == p.cfg.Namespace+"/"+name {
			out = append(out, a)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		return out[i].Updated > out[j].Updated || out[i].Updated == out[j].Updated && out[i].Name < out[j].Name
	})
	return out
}

func (p *Platform) putPackage(r *http.Request) (int, any, error) {
	name := r.PathValue("name")
	if !entityName.MatchString(name) || name == "default" {
		return 0, nil, problem{400, fmt.Sprintf("The package name '%s' is not allowed.", name)}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old, exists := p.packages[name]
	if exists && !flag(r, "overwrite") {
		return 0, nil, problem{409, textExists}
	}
	v := &pkg{Binding: json.RawMessage("{}"), Parameters: []keyValue{}, Annotations: []keyValue{}}
	if exists {
		*v = *old
	}
	if err := readJSON(r, p.cfg.Limits.Payload, v); err != nil {
		return 0, nil, err
	}
	v.Namespace, v.Name, v.Updated = p.cfg.Namespace, name, time.Now().UnixMilli()
	v.Version = "0.0.1"
	if exists {
		v.Version = nextVersion(old.Version)
	}
	p.packages[name] = v
	return 200, v, nil
}

func (p *Platform) deletePackage(r *http.Request) (int, any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.packages[r.PathValue("name")]
	if !ok {
		return 0, nil, problem{404, textNoEntity}
	}
	members := p.actionsOf(v.Name)
	if len(members) > 0 && !flag(r, "force") {
		return 0, nil, problem{409, textPackageNotEmpty(len(members))}
	}
	for _, a := range members {
		delete(p.actions, a.path())
	}
	delete(p.packages, v.Name)
	return 200, v, nil
}

func (p *Platform) listActions(r *http.Request) (int, any, error) {
	limit, skip, err := page(r)
	if err != nil {
		return 0, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*action
	if name := r.PathValue("pkg"); name != "" {
		if p.packages[name] == nil {
			return 0, nil, problem{404, textNoEntity}
		}
		list = p.actionsOf(name)
	} else {
		for _, a := range p.actions {
			list = append(list, a)
		}
		sort.Slice(list, func(i, j int) bool {
			return list[i].Updated > list[j].Updated || list[i].Updated == list[j].Updated && list[i].path() < list[j].path()
		})
	}
	if flag(r, "count") {
		return 200, map[string]int{"actions": len(list)}, nil
	}
	out := []map[string]any{}
	for _, a := range cut(list, limit, skip) {
		out = append(out, map[string]any{
			"namespace": a.Namespace, "name": a.Name, "version": a.Version, "publish": a.Publish, "annotations": a.Annotations,
			"limits": a.Limits, "exec": map[string]bool{"binary": a.Exec.Binary}, "updated": a.Updated,
		})
	}
	return 200, out, nil
}

// key is the full path of the action a request names.
func (p *Platform) key(r *http.Request) (pkgName, key string) {
	pkgName = r.PathValue("pkg")
	if pkgName == "" {
		return "", p.cfg.Namespace + "/" + r.PathValue("name")
	}
	return pkgName, p.cfg.Namespace + "/" + pkgName + "/" + r.PathValue("name")
}

func (p *Platform) getAction(r *http.Request) (int, any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pkgName, key := p.key(r)
	a, ok := p.actions[key]
	if !ok {
		return 0, nil, problem{404, textNoEntity}
	}
	out := *a
	if r.URL.Query().Get("code") == "false" {
		out.Exec.Code = ""
	}
	if owner := p.packages[pkgName]; owner != nil {
		out.Parameters = mergeParameters(owner.Parameters, a.Parameters)
	}
	return 200, &out, nil
}

// mergeParameters lets the later list win.
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

// actionPut is the body of a PUT; what is missing keeps its old value or gets the default.
type actionPut struct {
	Exec       *execSpec   `json:"exec"`
	Parameters *[]keyValue `json:"parameters"`
	Limits     *struct {
		Timeout     *int `json:"timeout"`
		Memory      *int `json:"memory"`
		Logs        *int `json:"logs"`
		Concurrency *int `json:"concurrency"`
	} `json:"limits"`
	Annotations *[]keyValue `json:"annotations"`
	Publish     *bool       `json:"publish"`
}

func (p *Platform) putAction(r *http.Request) (int, any, error) {
	var body actionPut
	if err := readJSON(r, p.cfg.Limits.Code+disdel.MB, &body); err != nil {
		return 0, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	pkgName, key := p.key(r)
	if pkgName != "" && p.packages[pkgName] == nil {
		return 0, nil, problem{404, textNoEntity}
	}
	if !entityName.MatchString(r.PathValue("name")) {
		return 0, nil, problem{400, "The name of the entity contains illegal characters."}
	}
	old := p.actions[key]
	if old != nil && !flag(r, "overwrite") {
		return 0, nil, problem{409, textExists}
	}
	a, err := p.newAction(key, old, body)
	if err != nil {
		return 0, nil, err
	}
	p.actions[key] = a
	return 200, a, nil
}

func (p *Platform) newAction(key string, old *action, body actionPut) (*action, error) {
	l := p.cfg.Limits
	a := &action{
		Version: "0.0.1", Parameters: []keyValue{}, Annotations: []keyValue{}, Updated: time.Now().UnixMilli(),
		Limits: limits{int(l.Timeout.Std.Milliseconds()), l.Memory.Std.MB(), l.LogsMB.Std, l.Concurrency.Std},
	}
	if old != nil {
		*a = *old
		a.Version, a.Updated = nextVersion(old.Version), time.Now().UnixMilli()
	}
	a.Namespace, a.Name = key[:strings.LastIndexByte(key, '/')], key[strings.LastIndexByte(key, '/')+1:]
	if body.Exec != nil {
		a.Exec = *body.Exec
		_, err := base64.StdEncoding.DecodeString(a.Exec.Code)
		a.Exec.Binary = err == nil && a.Exec.Code != ""
	}
	if _, ok := p.cfg.Kinds[a.Exec.Kind]; !ok {
		kinds := make([]string, 0, len(p.cfg.Kinds))
		for k := range p.cfg.Kinds {
			kinds = append(kinds, "'"+k+"'")
		}
		sort.Strings(kinds)
		return nil, problem{400, fmt.Sprintf("The specified runtime '%s' is not supported by this platform. Valid values are: %s.", a.Exec.Kind, strings.Join(kinds, ", "))}
	}
	if body.Parameters != nil {
		a.Parameters = *body.Parameters
	}
	if body.Publish != nil {
		a.Publish = *body.Publish
	}
	if body.Annotations != nil {
		a.Annotations = *body.Annotations
	}
	a.Annotations = mergeParameters([]keyValue{kv("provide-api-key", false)}, a.Annotations, []keyValue{kv("exec", a.Exec.Kind)})
	if n := body.Limits; n != nil {
		for _, set := range []struct {
			to   *int
			from *int
		}{{&a.Limits.Timeout, n.Timeout}, {&a.Limits.Memory, n.Memory}, {&a.Limits.Logs, n.Logs}, {&a.Limits.Concurrency, n.Concurrency}} {
			if set.from != nil {
				*set.to = *set.from
			}
		}
	}
	return a, l.check(a.Limits)
}

// check refuses limits outside the platform's, with the texts of OpenWhisk's Limits classes.
func (l *Limits) check(v limits) error {
	for _, c := range []struct {
		value, low, high int
		above, below     string
	}{
		{v.Memory, l.Memory.Min.MB(), l.Memory.Max.MB(), "memory size %d MB exceeds allowed threshold of %d MB", "memory size %d MB below allowed threshold of %d MB"},
		{v.Timeout, int(l.Timeout.Min.Milliseconds()), int(l.Timeout.Max.Milliseconds()), "duration %d milliseconds exceeds allowed threshold of %d milliseconds", "duration %d milliseconds below allowed threshold of %d milliseconds"},
		{v.Logs, l.LogsMB.Min, l.LogsMB.Max, "size %d MB exceeds allowed threshold of %d MB", "size %d MB below allowed threshold of %d MB"},
		{v.Concurrency, l.Concurrency.Min, l.Concurrency.Max, "concurrency %d exceeds allowed threshold of %d", "concurrency %d below allowed threshold of %d"},
	} {
		if c.value > c.high {
			return problem{400, "requirement failed: " + fmt.Sprintf(c.above, c.value, c.high)}
		}
		if c.value < c.low {
			return problem{400, "requirement failed: " + fmt.Sprintf(c.below, c.value, c.low)}
		}
	}
	return nil
}

func (p *Platform) deleteAction(r *http.Request) (int, any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, key := p.key(r)
	a, ok := p.actions[key]
	if !ok {
		return 0, nil, problem{404, textNoEntity}
	}
	delete(p.actions, key)
	return 200, a, nil
}

// sameAction is the pool's question whether a warm container fits: structural equality, version and all.
func sameAction(a, b *action) bool { return a == b || reflect.DeepEqual(a, b) }
