package platform

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"errors"
	"slices"
)

// advise tells the platform's log what an action that was made will end with, all of it at once. OpenWhisk takes such
// an action without a word, and so does the API here; whoever runs the platform for himself need not wait for the first
// invocation.
func (p *Platform) advise(a *action) {
	var why []error
	if a.Exec.Kind == blackbox {
		if _, ok := p.cfg.runsAs(&a.Exec); !ok {
			why = append(why, errors.New("no kind of this platform runs its image "+a.Exec.Image+
				": invocations end as where an image cannot be pulled"))
		}
	}
	if needs := firstFiles[family(a.Exec.Kind)]; a.Exec.Binary && needs != nil {
		why = append(why, checkArchive(a.Exec.Code, needs))
	}
	if err := errors.Join(why...); err != nil {
		p.cfg.Logger.WithField("action", a.path()).WithError(err).Warn("an action was made that cannot run here")
	}
}

// firstFiles are those of an archive of which it must have one, by family.
var firstFiles = map[string][]string{
	"python": {"__main__.py"},
	"nodejs": {"package.json", "index.js", "index.mjs"},
}

// checkArchive looks at an archive as far as its list of files. What is no archive is one file.
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
	return errors.New("its archive has none of the files that it could begin with")
}
