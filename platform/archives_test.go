package platform

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel/internal/test/race"
)

// inArchive is a file of a zip archive.
type inArchive struct {
	name, text string
	mode       fs.FileMode // 0: a plain file
}

// archive makes a zip archive as an action's code.
func archive(t *testing.T, files ...inArchive) string {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		head := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		if f.text == "" {
			head.Method = zip.Store // 50,000 compressors of nothing take a minute under the race detector
		}
		if f.mode != 0 {
			head.SetMode(f.mode)
		}
		into, err := w.CreateHeader(head)
		if err == nil {
			_, err = into.Write([]byte(f.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// changed is an archive with some of its bytes changed.
func changed(t *testing.T, code string, change func([]byte) []byte) string {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(code)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(change(data))
}

func TestPythonArchives(t *testing.T) {
	helper := inArchive{"lib/helper.py", "def f(): return open('data/x.txt').read()", 0}
	data := inArchive{"data/x.txt", "from a file", 0}
	runScripts(t, "python:", []script{
		{
			"files", "", archive(t, inArchive{"__main__.py", "from lib.helper import f\ndef main(a): return {'x': f()}", 0},
				helper,
				inArchive{"lib/__init__.py", "", 0}, data), `{}`, statusSuccess, `{"x":"from a file"}`,
		},
		{
			"named", "other", archive(t, inArchive{"__main__.py", "def other(a): return {'ok': 1}", 0}), `{}`, statusSuccess,
			`{"ok":1}`,
		},
		{
			"virtualenv", "", archive(t, inArchive{"__main__.py", "import mine\ndef main(a): return {'v': mine.v}", 0},
				inArchive{"virtualenv/lib/python3.11/site-packages/mine.py", "v = 7", 0}), `{}`, statusSuccess, `{"v":7}`,
		},
		{
			"executable", "", archive(t,
				inArchive{
					"__main__.py",
					"import subprocess\ndef main(a): return {'x': subprocess.run(['./tool'], capture_output=True, text=True).stdout}",
					0,
				},
				inArchive{"tool", "#!/bin/sh\nprintf ran", 0o755}), `{}`, statusSuccess, `{"x":"ran"}`,
		},
		{
			"links", "", archive(t, inArchive{"__main__.py", "def main(a): return {'x': open('here/x.txt').read()}", 0}, data,
				inArchive{"here", "data", fs.ModeSymlink | 0o777}), `{}`, statusSuccess, `{"x":"from a file"}`,
		},
		{
			"nomain", "", archive(t, inArchive{"main.py", "def main(a): return {}", 0}), `{}`, statusDeveloper,
			"does not include __main__.py",
		},
	})
	runScripts(t, "python:", hostileArchives(t, "__main__.py", "def main(a): return {}"))
}

func TestNodeArchives(t *testing.T) {
	index := inArchive{"index.js", "exports.main = () => ({ from: 'index' })", 0}
	runScripts(t, "nodejs:", []script{
		{"index", "", archive(t, index), `{}`, statusSuccess, `{"from":"index"}`},
		{
			"package", "", archive(t, inArchive{"package.json", `{"main":"lib/start.js"}`, 0},
				inArchive{
					"lib/start.js",
					"const dep = require('dep'); exports.main = () => ({ from: dep.name, text: " +
						"require('fs').readFileSync('data.txt', 'utf8') })", 0,
				},
				inArchive{"node_modules/dep/package.json", `{"name":"dep","main":"d.js"}`, 0},
				inArchive{"node_modules/dep/d.js", "exports.name = 'a dependency'", 0}, inArchive{"data.txt", "data", 0}),
			`{}`, statusSuccess, `{"from":"a dependency","text":"data"}`,
		},
		{
			"named", "deep.er", archive(t, inArchive{"index.js", "exports.deep = { er: () => ({ ok: 1 }) }", 0}), `{}`,
			statusSuccess, `{"ok":1}`,
		},
		{
			"module", "", archive(t, inArchive{"package.json", `{"type":"module","main":"start.js"}`, 0},
				inArchive{"start.js", "export const main = () => ({ from: 'module' })", 0}), `{}`, statusSuccess,
			`{"from":"module"}`,
		},
		{
			"links", "", archive(t, index, inArchive{"here/data.txt", "x", 0},
				inArchive{"node_modules/.bin/tool", "../../here/data.txt", fs.ModeSymlink | 0o777}),
			`{}`, statusSuccess, `{"from":"index"}`,
		},
		{
			"noindex", "", archive(t, inArchive{"main.js", "exports.main = () => ({})", 0}), `{}`, statusDeveloper,
			"Zipped actions must contain either package.json or index.js at the root.",
		},
		{"nomain", "absent", archive(t, index), `{}`, statusDeveloper, "Action entrypoint 'absent' is not a function."},
	})
	runScripts(t, "nodejs:", hostileArchives(t, "index.js", "exports.main = () => ({})"))
}

// hostileArchives are archives that lead out of their folder, hold what they do not say, or more than is good. Each has
// what the action begins with, so that nothing but what is wrong keeps it from running.
func hostileArchives(t *testing.T, begin, text string) []script {
	main := inArchive{begin, text, 0}
	link := func(name, to string) inArchive { return inArchive{name, to, fs.ModeSymlink | 0o777} }
	long := strings.Repeat("x", 1025)
	plain := archive(t, main)
	big := archive(t, main, inArchive{"big", strings.Repeat("0", 1<<20), 0})
	var out []script
	add := func(code, why string) {
		out = append(out, script{fmt.Sprintf("hostile%d", len(out)), "", code, `{}`, statusDeveloper, why})
	}
	for _, name := range []string{"../out", "/out", "a/../../out", "a//b", "./out", "..", "a\x00b", long} {
		add(archive(t, main, inArchive{name, "x", 0}), "leads out of it")
	}
	for _, l := range []inArchive{link("l", "/etc/passwd"), link("l", "../l"), link("a/l", "../../out"), link("l", long)} {
		add(archive(t, main, l), "link")
	}
	// through two links, each of which stays inside
	add(archive(t, main, inArchive{"d/e/x", "x", 0}, link("d/e/b", "../.."), link("a", "d/e/b/../..")), "link")
	// a file through a link: the link is made last, where a folder is by then
	add(archive(t, main, link("l", "d"), inArchive{"l/x", "x", 0}, inArchive{"d/y", "y", 0}), "")
	add(archive(t, main, inArchive{"twice", "a", 0}, inArchive{"twice", "b", 0}), "twice")
	add(changed(t, plain, func(b []byte) []byte { return b[:len(b)-30] }), "cannot be unpacked")
	add(changed(t, plain, func([]byte) []byte { return []byte("PK\x03\x04") }), "cannot be unpacked")
	add(zipped, "cannot be unpacked")
	central := func(b []byte) int { return bytes.LastIndex(b, []byte("PK\x01\x02")) }
	add(changed(t, plain, func(b []byte) []byte { // one that is encrypted
		b[central(b)+8] |= 1
		b[6] |= 1
		return b
	}), "encrypted")
	add(changed(t, plain, func(b []byte) []byte { // one that is packed otherwise
		b[central(b)+10] = 12
		b[8] = 12
		return b
	}), "")
	add(changed(t, big, func(b []byte) []byte { // one that says it holds ten bytes
		binary.LittleEndian.PutUint32(b[central(b)+24:], 10)
		return b
	}), "")
	add(changed(t, big, func(b []byte) []byte { // one that says it holds a gigabyte
		binary.LittleEndian.PutUint32(b[central(b)+24:], 1<<30)
		return b
	}), "holds more than")
	return out
}

// An archive with more files than any action has is refused before it is unpacked.
func TestAnArchiveOfManyFilesIsRefused(t *testing.T) {
	race.SkipSequential(t)
	for family, begin := range map[string]inArchive{
		"python:": {"__main__.py", "def main(a): return {}", 0}, "nodejs:": {"index.js", "exports.main = () => ({})", 0},
	} {
		files := []inArchive{begin}
		for i := range 50_000 {
			files = append(files, inArchive{name: fmt.Sprint(i)})
		}
		runScripts(t, family, []script{{"many", "", archive(t, files...), `{}`, statusDeveloper, "more than 50000 files"}})
	}
}

// An action can require the package openwhisk if the platform has its folder. Otherwise a message says how to get it.
func TestActionsOfNodeRequireOpenWhisk(t *testing.T) {
	const uses = "const openwhisk = require('openwhisk'); function main () { return { n: " +
		"Object.keys(openwhisk()).length, list: typeof openwhisk().actions.list } }"
	zip := archive(t, inArchive{"index.js", uses + "; exports.main = main", 0})
	runScripts(t, "nodejs:", []script{
		{"lacks", "", uses, `{}`, statusDeveloper, "start the platform with --node-modules FOLDER"},
		{"lacks-zip", "", zip, `{}`, statusDeveloper, "start the platform with --node-modules FOLDER"},
		{"lacks-other", "", "require('other'); function main () {}", `{}`, statusDeveloper, "Cannot find module 'other'"},
	})
	module := os.Getenv("DISDEL_TEST_OPENWHISK_JS")
	if module == "" {
		t.Skip("DISDEL_TEST_OPENWHISK_JS is not set")
	}
	kinds := DefaultKinds(os.Args[0])
	if err := AddNodeModules(kinds, filepath.Dir(module)); err != nil {
		t.Skipf("%v", err) // where it lies, other users cannot read it
	}
	p := start(t, func(c *Config) { c.Kinds = kinds })
	for name, code := range map[string]string{"plain": uses, "zip": zip} {
		createScript(t, p, p.resolveKind("nodejs:default"), name, "", code)
		must(t, p, "PUT", "_/actions/"+name+"?overwrite=true", `{"annotations":[{"key":"provide-api-key","value":true}]}`)
		got := ask(t, p, p.AuthKey(), "POST", ns+"/actions/"+name+"?blocking=true&result=true", `{}`)
		if got.status != 200 || got.at("list") != "function" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if err := AddNodeModules(kinds, t.TempDir()); err == nil {
		t.Error("a folder without packages is taken")
	}
}
