package service

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/service/program"
)

// addEnvironments adds each virtual environment with all of its files. It counts as written when it was used last.
func (l *storedList) addEnvironments(below string) {
	folders, _ := filepath.Glob(filepath.Join(below, "*", "pyvenv.cfg")) // the pattern is well-formed
	for _, config := range folders {
		dir := filepath.Dir(config)
		used, err := os.Stat(dir)
		if err != nil {
			continue
		}
		l.add(StoredEnvironments, filepath.Base(dir), int64(program.SizeOf(dir)), used.ModTime())
	}
}

// environmentReason keeps the environments of models, of jobs that run or may be resumed, and those of new jobs, which
// have no record yet.
func (n *storedNeeds) environmentReason(item *StoredItem, models []modelstore.Model) string {
	for i := range models {
		if c := models[i].Network.Custom; c != nil && c.Python != nil && runsIn(c.Python.Interpreter, item.Name) {
			return "the model " + models[i].Ref() + " needs it"
		}
	}
	for interpreter, why := range n.interpreters {
		if runsIn(interpreter, item.Name) {
			return why
		}
	}
	if time.Since(item.Written) < startsWithin {
		return "it was used in the last hour, and a job may be starting"
	}
	if n.models != "" {
		return n.models
	}
	return n.unread
}

// runsIn tells whether an interpreter is that of an environment.
func runsIn(interpreter, environment string) bool {
	return strings.Contains(interpreter, string(filepath.Separator)+environment+string(filepath.Separator))
}

// removeEnvironment deletes a virtual environment, unless a command is just making it.
func (s *Service) removeEnvironment(name string) error {
	const op = "delete the environment"
	dir := filepath.Join(s.pythonFolder(), "environments", name)
	used, err := os.Stat(dir)
	if err != nil {
		return &disdel.Error{Kind: disdel.NotFound, Op: op, Msg: "there is no environment " + name}
	}
	lock, err := files.Lock(dir + ".lock")
	if err != nil || time.Since(used.ModTime()) < startsWithin {
		if err == nil {
			err = files.Unlock(lock)
		}
		return &disdel.Error{Kind: disdel.Conflict, Op: op, Msg: "another command uses it", Err: err, Hint: "try again later"}
	}
	defer files.Unlock(lock) //nolint:errcheck // the next command makes it anew
	if err := os.RemoveAll(dir); err != nil {
		return &disdel.Error{Kind: disdel.Unavailable, Op: op, Err: files.Plain(err)}
	}
	return nil
}
