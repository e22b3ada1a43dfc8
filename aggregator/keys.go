package aggregator

import (
	"fmt"
	"time"

	"github.com/disdel/disdel"
)

// keyLife is how long a key outlives its last write: long enough to look into a job that hangs over night, short enough
// that what a crash leaves does not fill the server.
const keyLife = 24 * time.Hour

// keys builds every key. They carry job, round, level and member, so that a second delivery meets the first one's key, and
// the job in braces, so that a sharded Redis keeps a job together.
type keys struct{ prefix string }

func (k keys) job(id disdel.JobID) string { return fmt.Sprintf("%s:{%s}", k.prefix, id) }

func (k keys) update(id disdel.UpdateID) string {
	return fmt.Sprintf("%s:update:%d:%d:%d", k.job(id.Job), id.Round, id.Level, id.Member)
}

func (k keys) reference(job disdel.JobID, round int) string {
	return fmt.Sprintf("%s:reference:%d", k.job(job), round)
}

func (k keys) progress(job disdel.JobID) string { return k.job(job) + ":progress" }

func (k keys) cancel(job disdel.JobID) string { return k.job(job) + ":cancel" }

// index is the set of all keys of a job, so that a sweep needs no scan of the server.
func (k keys) index(job disdel.JobID) string { return k.job(job) + ":keys" }

// part is one piece of a value that is too large for one command.
func part(key string, i int) string { return fmt.Sprintf("%s:%d", key, i) }
