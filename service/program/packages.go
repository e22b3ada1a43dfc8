package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

// Bounds of an environment that a server makes.
const (
	MaxRequirements = 64 << 10 // bytes of the text
	MaxEnvironment  = 8 * disdel.GB

	serverTimeout = 20 * time.Minute
	sizeInterval  = 500 * time.Millisecond
)

// Packages are the packages that a client's program requires of a server.
type Packages struct {
	Requirements string // text of a requirements.txt
	Index        string // where they come from: the URL of a package index, or a folder of wheels
	Cache        string // the virtual environment is made below this folder

	// Room returns the most bytes that a new environment may have, and claims them until release is called. nil:
	// MaxEnvironment.
	Room func(ctx context.Context) (most disdel.Bytes, release func(), err error)
}

// Install makes a virtual environment with the packages, unless the folder has one for the same text. It returns the
// name of its folder. Only wheels are installed: no code of a package runs. Install returns Invalid for a text with
// other lines than package names, and for packages that cannot be had. It returns OverLimit, Timeout, Unavailable for
// an index that does not answer, and the errors of Room.
func (p Packages) Install(ctx context.Context) (name string, err error) {
	if err := p.check(); err != nil {
		return "", err
	}
	d := description{Options: Options{Cache: p.Cache, Timeout: defaultTimeout}, index: p.Index, most: MaxEnvironment}
	if d.temp, err = os.MkdirTemp("", "disdel-packages-"); err != nil {
		return "", &disdel.Error{Kind: disdel.Unavailable, Op: d.op(), Err: err}
	}
	defer os.RemoveAll(d.temp) //nolint:errcheck // what stays is in the temp folder
	d.Python.Requirements = filepath.Join(d.temp, "requirements.txt")
	if err := os.WriteFile(d.Python.Requirements, []byte(p.Requirements), 0o600); err != nil {
		return "", &disdel.Error{Kind: disdel.Unavailable, Op: d.op(), Err: err}
	}
	base, err := d.examine(ctx, "python3")
	if err != nil {
		return "", &disdel.Error{
			Kind: disdel.Unavailable, Op: d.op(), Msg: "this server has no Python that works", Err: err, Hint: askOperator,
		}
	}
	d.room = p.Room
	made, err := d.virtual(ctx, base, nil)
	return filepath.Base(filepath.Dir(filepath.Dir(made.path))), err
}

const askOperator = "ask whoever runs the server"

// plainRequirement is a name with extras, versions, a marker and hashes. Its other forms name files and addresses,
// which a server would read for its client.
var plainRequirement = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*\s*(\[[\w\s,.-]*\])?\s*` +
	`(\(?\s*(===?|~=|!=|<=?|>=?)\s*[\w.*+!-]+\s*(,\s*(===?|~=|!=|<=?|>=?)\s*[\w.*+!-]+\s*)*\)?)?\s*` +
	`(;[\w\s.,'"()<>=!~]*)?(\s+--hash=\w+:[0-9a-f]+)*$`)

// check returns all lines that a server does not take.
func (p Packages) check() error {
	if len(p.Requirements) > MaxRequirements {
		return &disdel.Error{
			Kind: disdel.OverLimit, Op: "install packages",
			Msg: fmt.Sprintf("the requirements have more than %v", disdel.Bytes(MaxRequirements)),
		}
	}
	var wrong []string
	text := strings.ReplaceAll(strings.ReplaceAll(p.Requirements, "\r\n", "\n"), "\\\n", " ")
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(" "+line, " #")
		if line = strings.TrimSpace(line); line != "" && !plainRequirement.MatchString(line) {
			wrong = append(wrong, fmt.Sprintf("%.80q", terminal.Clean(line)))
		}
	}
	if wrong == nil {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "install packages",
		Msg:  "a server takes no such lines of requirements: " + strings.Join(wrong, ", "),
		Hint: "write names of packages with versions, such as numpy>=1.24; the server has its own package index",
	}
}

// sources say where an installer gets packages: the user's own choice, or the index of a server.
func (d *description) sources() []string {
	switch {
	case d.index == "":
		return nil
	case strings.Contains(d.index, "://"):
		return []string{"--only-binary", ":all:", "--index-url", d.index}
	default:
		return []string{"--only-binary", ":all:", "--no-index", "--find-links", d.index}
	}
}

var errTooLarge = errors.New("the packages are too large")

// fillBounded installs packages for a client: without this process's secrets, in bounded time and space.
func (d *description) fillBounded(ctx context.Context, steps [][]string, draft string) error {
	most := d.most
	if d.room != nil {
		room, release, err := d.room(ctx)
		if err != nil {
			return err
		}
		defer release()
		most = min(most, room)
	}
	bounded, stop := context.WithTimeout(ctx, serverTimeout)
	defer stop()
	bounded, tooLarge := context.WithCancelCause(bounded)
	defer tooLarge(nil)
	go func() {
		for bounded.Err() == nil {
			if SizeOf(draft)+SizeOf(d.temp) > most {
				tooLarge(errTooLarge)
			}
			select {
			case <-bounded.Done():
			case <-time.After(sizeInterval):
			}
		}
	}()
	for _, step := range steps {
		_, prints, err := d.run(bounded, d.installer(), serverTimeout, nil, step[0], step[1:]...)
		if err != nil {
			return d.notInstalled(ctx, bounded, most, string(prints))
		}
	}
	if SizeOf(draft) > most {
		return d.tooLarge(most)
	}
	return nil
}

// installer surrounds pip on a server: confined, but with the machine's way to the network.
func (d *description) installer() surroundings {
	s := d.confined()
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE"} {
		if value := os.Getenv(name); value != "" {
			s.variables = append(s.variables, name+"="+value)
		}
	}
	return s
}

func (d *description) tooLarge(most disdel.Bytes) error {
	return &disdel.Error{
		Kind: disdel.OverLimit, Op: d.op(),
		Msg: fmt.Sprintf("the packages need more than the %v that are left for them", most),
		Hint: "name fewer packages, delete what you no longer need (disdel du lists it), or " + askOperator +
			" for a larger --disk",
	}
}

var (
	noVersion = regexp.MustCompile(`No matching distribution found for (\S+)`)
	versions  = regexp.MustCompile(`\(from versions: ([^)]*)\)`)
)

// notInstalled says why packages could not be installed, by what pip has printed.
func (d *description) notInstalled(ctx, bounded context.Context, most disdel.Bytes, prints string) error {
	prints = terminal.Clean(prints)
	e := &disdel.Error{Kind: disdel.Invalid, Op: d.op()}
	at := disdel.Redacted(d.index)
	found := noVersion.FindStringSubmatch(prints)
	switch {
	case ctx.Err() != nil:
		e.Kind, e.Msg, e.Err = disdel.Canceled, "it was stopped", ctx.Err()
	case errors.Is(context.Cause(bounded), errTooLarge):
		return d.tooLarge(most)
	case bounded.Err() != nil:
		e.Kind, e.Msg = disdel.Timeout, fmt.Sprintf("the packages were not installed within %v", serverTimeout)
		e.Hint = "name fewer packages, or try again: another time the index may be faster"
	case strings.Contains(prints, "Retrying (") || strings.Contains(prints, "connection error"):
		e.Kind, e.Msg, e.Hint = disdel.Unavailable, "the package index "+at+" does not answer", "try again, or "+askOperator
	case found != nil:
		e.Msg = fmt.Sprintf("%s has no wheel of %s for the server's Python", at, strings.TrimSuffix(found[1], "."))
		if there := versions.FindStringSubmatch(prints); there != nil && there[1] != "none" {
			e.Msg += "; it has " + there[1]
		}
		e.Hint = "check the name and the version. Packages without a wheel are not built on a server: " + askOperator
	default:
		e.Msg, e.Hint = "pip failed: "+lastErrors(prints), "correct model.python.requirements, or "+askOperator
	}
	return e
}

// lastErrors are the lines that pip marks as errors, else its last line.
func lastErrors(prints string) string {
	var marked []string
	last := ""
	for line := range strings.Lines(prints) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "ERROR: "); ok {
			marked = append(marked, text)
		}
		if line != "" {
			last = line
		}
	}
	if marked == nil {
		return last
	}
	return strings.Join(marked, "; ")
}

// SizeOf is the size of all files in a folder, 0 if it is not there.
func SizeOf(dir string) (all disdel.Bytes) {
	filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error { //nolint:errcheck // files may vanish meanwhile
		if err != nil || !e.Type().IsRegular() {
			return nil //nolint:nilerr // as above
		}
		if info, err := e.Info(); err == nil {
			all += disdel.Bytes(info.Size())
		}
		return nil
	})
	return all
}
