package platform

import (
	"embed"
	"encoding/json"
	"io/fs"
	"path"
	"strings"

	"github.com/disdel/disdel"
)

// binding is the package that a bound package stands for; {} if the package is not bound.
type binding struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// UnmarshalJSON reads an object.
func (b *binding) UnmarshalJSON(data []byte) error {
	type plain binding
	if json.Unmarshal(data, (*plain)(b)) != nil {
		return errFieldObject("namespace")
	}
	return nil
}

func (b binding) key() string { return b.Namespace + "/" + b.Name }

type pkg struct {
	header
	Binding    binding    `json:"binding"`
	Parameters []keyValue `json:"parameters"`
}

func (v *pkg) bound() bool { return v.Binding.Name != "" }

type packagePut struct {
	headerPut
	Binding    binding    `json:"binding"`
	Parameters *keyValues `json:"parameters"`
}

// visiblePackage finds a package that the user may read: an own or a public one. The refusal does not tell whether
// another user's private package exists.
func visiblePackage(t tx, u *user, key string) (*pkg, error) {
	v, err := get[pkg](t, packages, key)
	if err != nil {
		return nil, err
	}
	foreign := !hasPrefix([]byte(key), u.Name+"/")
	switch {
	case foreign && (v == nil || !v.Publish):
		return nil, errForbidden(key)
	case v == nil:
		return nil, notFoundError(t, packages, key)
	}
	return v, nil
}

// resolvePackage follows a binding: it returns the named package, the package that has the actions, and the parameters
// of both.
func resolvePackage(t tx, u *user, key string) (named, owner *pkg, params []keyValue, err error) {
	if named, err = visiblePackage(t, u, key); err != nil {
		return nil, nil, nil, err
	}
	if !named.bound() {
		return named, named, named.Parameters, nil
	}
	if owner, err = visiblePackage(t, u, named.Binding.key()); err != nil {
		return nil, nil, nil, err
	}
	return named, owner, mergeParameters(owner.Parameters, named.Parameters), nil
}

func (p *Platform) listPackages(q *request) (int, any, error) {
	var list []*pkg
	err := p.store.view(func(t tx) error {
		prefix, public := q.ns+"/", flag(q.Request, "public")
		if public {
			prefix = ""
		}
		return each(t, packages, prefix, func(v *pkg) {
			if v.Publish || v.Namespace == q.user.Name {
				list = append(list, v)
			}
		})
	})
	if err != nil {
		return 0, nil, err
	}
	return listOf(q.Request, "packages", list, func(v *pkg) any {
		var bound any = false
		if v.bound() {
			bound = v.Binding
		}
		return struct {
			header
			Binding any `json:"binding"`
		}{v.header, bound}
	})
}

// packageMember is an action in the answer to GET of its package.
type packageMember struct {
	Name        string     `json:"name"`
	Version     string     `json:"version"`
	Annotations []keyValue `json:"annotations"`
}

func (p *Platform) getPackage(q *request) (int, any, error) {
	var out struct {
		pkg
		Actions []packageMember `json:"actions"`
		Feeds   []packageMember `json:"feeds"`
	}
	out.Actions, out.Feeds = []packageMember{}, []packageMember{}
	err := p.store.view(func(t tx) error {
		key := q.ns + "/" + q.PathValue("name")
		named, owner, params, err := resolvePackage(t, q.user, key)
		if err == error(errNoEntity) {
			return errNoPackage(key) // only this answer names the package
		}
		if err != nil {
			return err
		}
		out.pkg = *named
		out.Parameters = params
		list, err := actionsUnder(t, owner.path())
		newestFirst(list)
		for _, a := range list {
			m := packageMember{a.Name, a.Version, a.Annotations}
			if isFeed(a.Annotations) {
				out.Feeds = append(out.Feeds, m)
			} else {
				out.Actions = append(out.Actions, m)
			}
		}
		return err
	})
	return httpDone, &out, err
}

func isFeed(annotations []keyValue) bool {
	return isAnnotationSet(annotations, "feed")
}

// isTruthy tells whether an annotation counts as set.
func isTruthy(v json.RawMessage) bool {
	switch string(v) {
	case "", "null", "false", "0", `""`:
		return false
	}
	return true
}

func (p *Platform) putPackage(q *request) (int, any, error) {
	name := q.PathValue("name")
	if err := checkName(name); err != nil {
		return 0, nil, err
	}
	if name == "default" {
		return 0, nil, errPackageReserved(name)
	}
	var body packagePut
	if err := readEntity(q.Request, p.cfg.Limits.bodyLimit(), "binding", &body); err != nil {
		return 0, nil, err
	}
	var out *pkg
	err := p.store.update(func(t tx) error {
		old, err := get[pkg](t, packages, q.ns+"/"+name)
		if err != nil {
			return err
		}
		if err := checkPut(t, packages, q, old != nil); err != nil {
			return err
		}
		if out, err = p.newPackage(t, q, old, &body); err != nil {
			return err
		}
		return put(t, packages, out.path(), out)
	})
	return httpDone, out, err
}

func (p *Platform) newPackage(t tx, q *request, old *pkg, body *packagePut) (*pkg, error) {
	v := &pkg{Parameters: []keyValue{}}
	var before *header
	if old != nil {
		*v = *old
		before = &old.header
	}
	v.header = body.next(q.ns, q.PathValue("name"), before)
	if body.Parameters != nil {
		v.Parameters = mergeParameters(*body.Parameters)
	}
	if body.Binding.Name != "" {
		if err := bind(t, q, old, v, body.Binding); err != nil {
			return nil, err
		}
	}
	if v.bound() { // lists show only annotations, where clients look for the binding
		v.Annotations = mergeParameters(v.Annotations, []keyValue{kv("binding", v.Binding)})
	}
	if err := p.cfg.Limits.checkSize("annotations", v.Annotations); err != nil {
		return nil, err
	}
	return v, p.cfg.Limits.checkSize("parameters", v.Parameters)
}

func bind(t tx, q *request, old, v *pkg, b binding) error {
	if b.Namespace == "" || b.Namespace == "_" {
		b.Namespace = q.ns
	}
	if old != nil && !old.bound() {
		return errNotBinding
	}
	target, err := visiblePackage(t, q.user, b.key())
	if isNotFound(err) {
		return errBindingTarget
	}
	if err != nil {
		return err
	}
	if target.bound() {
		return errBindingNested
	}
	v.Binding = b
	return nil
}

func (p *Platform) deletePackage(q *request) (int, any, error) {
	var v *pkg
	err := p.store.update(func(t tx) (err error) {
		key := q.ns + "/" + q.PathValue("name")
		if v, err = get[pkg](t, packages, key); err != nil {
			return err
		}
		if v == nil {
			return notFoundError(t, packages, key)
		}
		members, err := actionsUnder(t, key)
		if err != nil {
			return err
		}
		if len(members) > 0 && !flag(q.Request, "force") {
			return errPackageNotEmpty(len(members))
		}
		for _, a := range members {
			if err := p.store.dropAction(t, a.path()); err != nil {
				return err
			}
		}
		return t.drop(packages, key)
	})
	return httpDone, v, err
}

// refreshPackages answers `wsk package refresh`. Bindings follow their packages at once here, so nothing changes.
func (p *Platform) refreshPackages(q *request) (int, any, error) {
	if q.PathValue("name") != "refresh" || !q.own() {
		return 0, nil, errNoRoute
	}
	return httpDone, map[string][]string{"added": {}, "updated": {}, "deleted": {}}, nil
}

// CatalogNamespace is the namespace of OpenWhisk's public packages.
const CatalogNamespace = "whisk.system"

// catalogFiles are our own implementations of the actions in the packages utils and samples.
//
//go:embed catalog
var catalogFiles embed.FS

// InstallCatalog adds the namespace whisk.system with the packages utils and samples of OpenWhisk's catalog, which
// documents and tutorials use. Unchanged actions stay as they are. It returns Invalid if the machine has no Node.js.
func (p *Platform) InstallCatalog() error {
	kind := p.resolveKind("nodejs:default")
	if _, ok := p.cfg.Kinds[kind]; !ok {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "install the catalog", Msg: "its actions need Node.js, which this machine does not have",
			Hint: "install node, or leave --catalog out",
		}
	}
	if p.namespace(CatalogNamespace) == nil {
		if _, err := p.PutNamespace(Namespace{Name: CatalogNamespace}, false); err != nil {
			return err
		}
	}
	files, err := fs.Glob(catalogFiles, "catalog/*/*.js")
	if err != nil {
		return err
	}
	return p.store.update(func(t tx) error {
		for _, file := range files {
			if err := p.installFile(t, kind, file); err != nil {
				return err
			}
		}
		return nil
	})
}

// installFile adds one action of the catalog to its package.
func (p *Platform) installFile(t tx, kind, file string) error {
	code, err := catalogFiles.ReadFile(file)
	if err != nil {
		return err
	}
	owner := path.Base(path.Dir(file))
	if err := p.installPackage(t, owner); err != nil {
		return err
	}
	where := pathName{CatalogNamespace + "/" + owner, strings.TrimSuffix(path.Base(file), ".js")}
	old, err := p.store.actionWithCode(t, where.key())
	if err != nil {
		return err
	}
	about, _, _ := strings.Cut(strings.TrimPrefix(string(code), "// "), "\n")
	annotations := keyValues{kv("description", about)}
	body := actionPut{Exec: &execPut{execSpec{Kind: kind, Code: string(code), hasCode: true}}}
	body.Annotations = &annotations
	if old != nil && old.Exec.Kind == kind && old.Exec.Code == string(code) {
		return nil
	}
	made, err := p.newAction(where, old, &body)
	if err != nil {
		return err
	}
	return t.putAction(made)
}

func (p *Platform) installPackage(t tx, name string) error {
	old, err := get[pkg](t, packages, CatalogNamespace+"/"+name)
	if err != nil || old != nil && old.Publish {
		return err
	}
	public := true
	var body packagePut
	body.Publish = &public
	made := &pkg{Parameters: []keyValue{}}
	made.header = body.next(CatalogNamespace, name, nil)
	return put(t, packages, made.path(), made)
}
