// Command release builds what users download. Each platform has an archive of its static programs with the licences of
// their parts, and a list of these parts in CycloneDX (https://cyclonedx.org/docs/1.6/json/). Linux also has a package
// for Debian and the container image of the actions. A release has SHA-256 sums, a script that checks them and
// installs, and a statement of how all were made.
//
// The same commit and the same Go give the same bytes, wherever they are built: archives have the time of the commit,
// programs have neither paths nor build ids, and Go's linker adds no time. Images also have certificate authorities,
// whose sum the statement names.
//
//	go -C tools run ./release -root .. -version v0.1.0 -out ../dist
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	root := flag.String("root", "..", "folder of the repository")
	version := flag.String("version", "", "version of the release; empty: as git describes the commit")
	out := flag.String("out", "../dist", "new folder of the files")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/arm64", "platforms, separated by commas")
	dirty := flag.Bool("dirty", false, "build although files differ from the commit")
	certificates := flag.String("certificates", "/etc/ssl/certs/ca-certificates.crt",
		"file of certificate authorities for the images; empty: no images")
	flag.Parse()
	r := release{root: *root, version: *version, out: *out, certificates: *certificates}
	if err := r.run(strings.Split(*platforms, ","), *dirty); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is what is built.
type release struct {
	root, version, revision string

	dirty   bool      // files differ from the commit
	time    time.Time // of the commit
	out     string
	scratch string // folder of programs before they are packed

	certificates string // file of certificate authorities for the images; "": no images
}

// installer is the script that checks the sum of an archive and installs its programs.
const installer = "install.sh"

func (r *release) run(platforms []string, dirty bool) error {
	if err := r.describe(dirty); err != nil {
		return err
	}
	if r.certificates != "" {
		if _, err := os.Stat(r.certificates); err != nil {
			return fmt.Errorf("the images need certificate authorities: %w; name a file with -certificates, or none", err)
		}
	}
	if err := os.Mkdir(r.out, 0o755); err != nil {
		return fmt.Errorf("%w; name a new folder with -out, or remove this one", err)
	}
	var err error
	if r.scratch, err = os.MkdirTemp("", "disdel-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.scratch)
	var names []string
	for _, p := range platforms {
		made, err := r.platform(p)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		names = append(names, made...)
	}
	script, err := os.ReadFile(filepath.Join(r.root, "scripts", installer))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, installer), script, 0o755); err != nil { //nolint:gosec // users start it
		return err
	}
	names = append(names, installer)
	return r.finish(names, platforms)
}

// describe reads the commit. It refuses files that differ from it, since nobody could build the same again.
func (r *release) describe(dirty bool) error {
	changes, err := r.git("status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" && !dirty {
		return fmt.Errorf("files differ from the commit; commit them, or try with -dirty:\n%s", changes)
	}
	r.dirty = changes != ""
	if r.revision, err = r.git("rev-parse", "HEAD"); err != nil {
		return err
	}
	if r.version == "" {
		if r.version, err = r.git("describe", "--tags", "--always", "--dirty"); err != nil {
			return err
		}
	}
	if strings.ContainsAny(r.version, "/ \t\n'\"") {
		return fmt.Errorf("the version %q is no part of a file's name", r.version)
	}
	at, err := r.git("log", "-1", "--format=%cI")
	if err != nil {
		return err
	}
	r.time, err = time.Parse(time.RFC3339, at)
	r.time = r.time.UTC()
	return err
}

func (r *release) git(args ...string) (string, error) {
	return output(exec.Command("git", append([]string{"-C", r.root}, args...)...))
}

// output is what a command prints, without the last line's end. The error has what it complains of.
func output(c *exec.Cmd) (string, error) {
	var said, complaints bytes.Buffer
	c.Stdout, c.Stderr = &said, &complaints
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, complaints.String())
	}
	return strings.TrimRight(said.String(), "\n"), nil
}

// platform makes the archive, the package, the image and the list of parts of a platform, such as linux/amd64. It
// returns their names.
func (r *release) platform(name string) ([]string, error) {
	system, machine, ok := strings.Cut(name, "/")
	if !ok {
		return nil, errors.New("a platform is SYSTEM/MACHINE, such as linux/arm64")
	}
	var packed []file
	programs := []string{"disdel"}
	if system == "linux" { // actions run only there
		programs = append(programs, "disdel-runtime")
	}
	for _, program := range programs {
		at := filepath.Join(r.scratch, program+"-"+system+"-"+machine)
		if err := r.build(program, at, system, machine); err != nil {
			return nil, err
		}
		data, err := os.ReadFile(at)
		if err != nil {
			return nil, err
		}
		packed = append(packed, file{program, data, 0o755})
	}
	parts, err := partsOf(r.root, filepath.Join(r.scratch, "disdel-"+system+"-"+machine))
	if err != nil {
		return nil, err
	}
	list, err := json.MarshalIndent(r.bill(parts), "", "  ")
	if err != nil {
		return nil, err
	}
	packed = append(packed, file{"NOTICES.txt", notices(parts), 0o644})
	for _, name := range []string{"README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return nil, err
		}
		packed = append(packed, file{name, data, 0o644})
	}
	base := fmt.Sprintf("disdel_%s_%s_%s", r.version, system, machine)
	archive, err := pack(base, packed, r.time)
	if err != nil {
		return nil, err
	}
	made := map[string][]byte{base + ".tar.gz": archive, base + ".cdx.json": append(list, '\n')}
	if system == "linux" {
		if made[base+".deb"], err = debian(r.version, machine, packed, r.time); err != nil {
			return nil, err
		}
	}
	for name, data := range made {
		if err := os.WriteFile(filepath.Join(r.out, name), data, 0o644); err != nil {
			return nil, err
		}
	}
	names := slices.Collect(maps.Keys(made))
	if system != "linux" || r.certificates == "" {
		return names, nil
	}
	image, err := r.image(machine)
	return append(names, image), err
}

// image writes the container image of the actions, as a file for `docker load`, and returns its name. No container
// engine builds it: the program that was just built does.
func (r *release) image(machine string) (string, error) {
	builder := filepath.Join(r.scratch, "disdel-"+runtime.GOOS+"-"+runtime.GOARCH)
	if _, err := os.Stat(builder); err != nil {
		if err := r.build("disdel", builder, runtime.GOOS, runtime.GOARCH); err != nil {
			return "", err
		}
	}
	name := fmt.Sprintf("disdel-runtime_%s_linux_%s.image.tar", r.version, machine)
	_, err := output(exec.Command(builder, "deploy", "image", "disdel-runtime:"+r.version,
		"--certificates", r.certificates,
		"--program", filepath.Join(r.scratch, "disdel-runtime-linux-"+machine), "--tar", filepath.Join(r.out, name)))
	return name, err
}

// build compiles a program. The stamps are those of `make build`.
func (r *release) build(program, to, system, machine string) error {
	const cli = "github.com/disdel/disdel/internal/cli"
	stamps := fmt.Sprintf("-s -w -buildid= -X main.release=%s -X %s.release=%s -X %s.revision=%s", r.version, cli,
		r.version, cli, r.revision)
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", stamps, "-o", to, "./cmd/"+program)
	c.Dir = r.root
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+machine, "GOFLAGS=", "GOAMD64=v1")
	_, err = output(c)
	return err
}

// finish writes the statement of how the files were made, and SHA256SUMS, which `sha256sum -c` reads.
func (r *release) finish(names, platforms []string) error {
	slices.Sort(names)
	var text strings.Builder
	var subjects []subject
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		sum := fmt.Sprintf("%x", sha256.Sum256(data))
		subjects = append(subjects, subject{name, map[string]string{"sha256": sum}})
		fmt.Fprintf(&text, "%s  %s\n", sum, name)
	}
	statement, err := r.provenance(subjects, platforms)
	if err != nil {
		return err
	}
	name := "disdel_" + r.version + ".intoto.json"
	if err := os.WriteFile(filepath.Join(r.out, name), statement, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(statement), name)
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(text.String()), 0o644)
}
