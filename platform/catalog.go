package platform

import (
	"embed"
	"io/fs"
	"path"
	"strings"

	"github.com/disdel/disdel"
)

// CatalogNamespace is the namespace of the packages that every OpenWhisk has.
const CatalogNamespace = "whisk.system"

// catalogFiles are the actions of the packages utils and samples: after what OpenWhisk's catalog says that they do, in
// our own words.
//
//go:embed catalog
var catalogFiles embed.FS

// InstallCatalog adds the namespace whisk.system with the public packages utils and samples of OpenWhisk's catalog,
// which documents and tutorials use. What is there already and the same is left alone. It returns Invalid where the
// machine has no Node.js to run them with.
func (p *Platform) InstallCatalog() error {
	kind := p.resolveKind("nodejs:default")
	if _, ok := p.cfg.Kinds[kind]; !ok {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "install the catalog", Msg: "its actions need Node.js, and this machine has none",
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

// installFile puts one action of the catalog into its package.
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
	old, err := p.store.whole(t, where.key())
	if err != nil {
		return err
	}
	about, _, _ := strings.Cut(strings.TrimPrefix(string(code), "// "), "\n")
	annotations := keyValues{kv("description", about)}
	body := actionPut{Exec: &execPut{execSpec{Kind: kind, Code: string(code), coded: true}}}
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
