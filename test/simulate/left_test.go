package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
)

// leaves returns what an ended job has left: keys, a package or checkpoints, or other than one version of its model.
func (w *world) leaves(rec *disdel.Record) error {
	var left []string
	add := func(what string, items ...string) {
		if len(items) > 0 {
			left = append(left, what+": "+strings.Join(items, ", "))
		}
	}
	add("keys in Redis", w.keysLeft()...)
	if !w.stays[leftPackage] {
		for name := range w.platform.packages {
			add("a package", name)
		}
		for name := range w.platform.actions {
			add("an action", name)
		}
	}
	if w.platform.tidy && !w.stays[leftCheckpoints] { // a container may write one after the end
		add("checkpoints", w.leftFiles()...)
	}
	if len(left) > 0 {
		return errors.New("the job leaves " + strings.Join(left, "; "))
	}
	return w.oneVersion(rec)
}

// oneVersion checks that the model of a job has one version, which is the one of the record.
func (w *world) oneVersion(rec *disdel.Record) error {
	models, err := modelstore.Open(context.Background(), w.models)
	if err != nil {
		return err
	}
	list, err := models.Versions(context.Background(), "m")
	if err != nil || len(list) != 1 || rec.Model == nil || list[0].ModelRef != *rec.Model || rec.Checkpoint != nil {
		return fmt.Errorf(
			"the record has the model %+v and the checkpoint %+v, and the versions are %+v: %v", rec.Model,
			rec.Checkpoint, list, err)
	}
	return models.CopyWeights(context.Background(), io.Discard, rec.Model.Path, rec.Model.Checksum)
}
