package aggregator

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel"
)

// keyLife is how long a key outlives its last write: long enough to look into a job that hangs over night, short enough
// that what a crash leaves does not fill the server.
const keyLife = 24 * time.Hour

// keys builds every key. They carry job, round, level and member, so that a second delivery meets the first one's key,
// and the job in braces, so that a sharded Redis keeps a job together.
type keys struct{ prefix string }

func (k keys) job(id disdel.JobID) string { return fmt.Sprintf("%s:{%s}", k.prefix, id) }

// value is where the committed head of a value lies.
func (k keys) value(kind kind, id disdel.UpdateID) string {
	return fmt.Sprintf("%s:%s:%d:%d:%d", k.job(id.Job), kind, id.Round, id.Level, id.Member)
}

// staged is where a value lies before it is committed, and where its parts stay afterwards. The fence keeps claims
// apart, the token two deliveries under one claim.
func (k keys) staged(h *head) string {
	return fmt.Sprintf("%s:%d:%016x", k.value(h.kind, h.id), h.fence, h.token)
}

// work is the claim on an update and, once it is committed, its digest.
func (k keys) work(id disdel.UpdateID) string {
	return fmt.Sprintf("%s:%s%d:%d:%d", k.job(id.Job), claimPrefix, id.Round, id.Level, id.Member)
}

// claimPrefix begins what the keys of claims have after the job's.
const claimPrefix = "work:"

func (k keys) progress(job disdel.JobID) string { return k.job(job) + ":progress" }

// progressField is the place of an action's last heartbeat.
func progressField(p disdel.Progress) string {
	return fmt.Sprintf("%s/%d/%d/%d", p.Task, p.Level, p.Member, p.Round)
}

func (k keys) cancel(job disdel.JobID) string { return k.job(job) + ":cancel" }

// kept is there of a job that ended with something for a later run of it.
func (k keys) kept(job disdel.JobID) string { return k.job(job) + ":kept" }

// references is the digest of every published reference by round, and the newest round.
func (k keys) references(job disdel.JobID) string { return k.job(job) + ":references" }

// states is where the parts of every committed state lie, as index entries, by round, member and level.
func (k keys) states(job disdel.JobID) string { return k.job(job) + ":states" }

// delta is what a member sends of a step; a claim's fence and a token follow.
func (k keys) delta(id disdel.UpdateID, step int) string {
	return fmt.Sprintf("%s:delta:%d:%d:%d", k.job(id.Job), id.Round, step, id.Member)
}

// deltas is the digest and the index entry of every committed delta of a round, by step and member.
func (k keys) deltas(job disdel.JobID, round int) string {
	return fmt.Sprintf("%s:deltas:%d:", k.job(job), round)
}

// draws is which batch of a round's queue each step of each member has.
func (k keys) draws(job disdel.JobID, round int) string {
	return fmt.Sprintf("%s:draws:%d:", k.job(job), round)
}

// log is the stream that tells of every committed delta of a round. Who begins in the middle looks through it.
func (k keys) log(job disdel.JobID, round int) string {
	return fmt.Sprintf("%s:log:%d:", k.job(job), round)
}

// news is the log with what was sent, of deltas that are small: one message gives all of it to every worker that waits.
func (k keys) news(job disdel.JobID, round int) string {
	return fmt.Sprintf("%s:news:%d:", k.job(job), round)
}

func (k keys) counts(job disdel.JobID) string { return k.job(job) + ":counts" }

// index is the set of all values and claims of a job, so that a sweep needs no scan of the server.
func (k keys) index(job disdel.JobID) string { return k.job(job) + ":keys" }

// single are the keys of a job that are there once.
func (k keys) single(job disdel.JobID) []string {
	return []string{
		k.progress(job), k.cancel(job), k.kept(job), k.references(job), k.states(job), k.counts(job), k.index(job),
	}
}

// part is one column of a value that is too large for one key.
func part(key string, i int) string { return key + ":" + strconv.Itoa(i) }

// entry is what the index keeps of a key: the key and how many parts lie beside it.
func entry(key string, parts int) string { return key + " " + strconv.Itoa(parts) }

// maxParts bounds what an index entry may have a sweep delete.
const maxParts = 1 << 20

// entryKeys reads an entry: the key, then its parts. What is no entry of ours is the key itself.
func entryKeys(text string) (key string, parts []string) {
	at := strings.LastIndexByte(text, ' ')
	if at < 0 {
		return text, nil
	}
	n, err := strconv.Atoi(text[at+1:])
	if err != nil || n < 0 || n > maxParts {
		return text, nil
	}
	key = text[:at]
	for i := range n {
		parts = append(parts, part(key, i))
	}
	return key, parts
}
