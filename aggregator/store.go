package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// Store is a job's place in Redis. It is safe for concurrent use.
type Store struct {
	client *redis.Client
	keys   keys
	part   int // bytes of a value that go into one command
}

// defaultPart keeps a command well below Redis' 512 MB and its replies small enough to stream.
const defaultPart = 16 << 20

// Open connects to the Redis that s names (redis:// or rediss://, as go-redis' ParseURL reads it) and checks that it
// answers. It returns Invalid for an address that is none, Denied for a refused password and Unavailable otherwise.
func Open(ctx context.Context, s disdel.Store) (*Store, error) {
	opt, err := redis.ParseURL(s.URL)
	if err != nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "open store", Msg: "the address is no Redis URL", // the URL may hold a password
			Hint: "write redis://HOST:PORT/0, or rediss:// for TLS"}
	}
	opt.DisableIdentity = true // miniredis does not know CLIENT SETINFO
	opt.MaxRetries = 3
	opt.DialTimeout, opt.ReadTimeout, opt.WriteTimeout = 5*time.Second, 30*time.Second, 30*time.Second
	prefix := s.Prefix
	if prefix == "" {
		prefix = "disdel"
	}
	store := &Store{client: redis.NewClient(opt), keys: keys{prefix}, part: defaultPart}
	if err := store.client.Ping(ctx).Err(); err != nil {
		store.client.Close()
		return nil, wrap(err, "open store", "Redis at "+opt.Addr)
	}
	return store, nil
}

// Quiet has go-redis keep to itself what it would print to standard error. Its logger is the process's, so this is for a
// program's main to decide; every error comes back to the caller anyway.
func Quiet() { redis.SetLogger(silent{}) }

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Close ends the connections.
func (s *Store) Close() error {
	if err := s.client.Close(); err != nil {
		return wrap(err, "close store", "")
	}
	return nil
}

// wrap tells what a Redis error means.
func wrap(err error, op, what string) error {
	if err == nil {
		return nil
	}
	e := &disdel.Error{Kind: disdel.Unavailable, Op: op, Msg: what, Err: err}
	var network net.Error
	switch text := err.Error(); {
	case errors.Is(err, redis.Nil):
		e.Kind, e.Err = disdel.NotFound, nil
	case errors.Is(err, context.Canceled):
		e.Kind = disdel.Canceled
	case strings.HasPrefix(text, "WRONGPASS"), strings.HasPrefix(text, "NOAUTH"), strings.HasPrefix(text, "NOPERM"):
		e.Kind, e.Hint = disdel.Denied, "check the user and password of the Redis URL"
	case strings.HasPrefix(text, "OOM"):
		e.Kind, e.Hint = disdel.OverLimit, "give Redis more memory (maxmemory), or run fewer workers at once"
	case errors.As(err, &network), errors.Is(err, context.DeadlineExceeded):
		e.Hint = "check that Redis runs and can be reached from here"
	}
	return e
}

// put writes a value in parts, the first of which says how many follow and is written last: nobody sees half a value.
func (s *Store) put(ctx context.Context, job disdel.JobID, key string, data []byte) error {
	n := (len(data) + s.part - 1) / s.part
	for i := n - 1; i >= 1; i-- {
		if err := s.set(ctx, job, part(key, i), data[i*s.part:min((i+1)*s.part, len(data))]); err != nil {
			return err
		}
	}
	first := append(fmt.Appendf(nil, "%08x", n), data[:min(s.part, len(data))]...)
	return s.set(ctx, job, key, first)
}

func (s *Store) set(ctx context.Context, job disdel.JobID, key string, value []byte) error {
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, key, value, keyLife)
		p.SAdd(ctx, s.keys.index(job), key)
		p.Expire(ctx, s.keys.index(job), keyLife)
		return nil
	})
	return err
}

// get reads what put wrote; NotFound is redis.Nil.
func (s *Store) get(ctx context.Context, key string) ([]byte, error) {
	data, err := s.client.Get(ctx, key).Bytes()
	if err != nil {
		return nil, err
	}
	if len(data) < 8 {
		return nil, fmt.Errorf("%d bytes are no value of ours", len(data))
	}
	n, err := strconv.ParseUint(string(data[:8]), 16, 32)
	if err != nil {
		return nil, errors.New("the value does not say how many parts it has")
	}
	data = data[8:]
	for i := 1; i < int(n); i++ {
		more, err := s.client.Get(ctx, part(key, i)).Bytes()
		if err != nil {
			return nil, err
		}
		data = append(data, more...)
	}
	return data, nil
}

// PushUpdate stores an update under its id. Pushing it again replaces it by itself. It returns Invalid for samples that
// are not above 0, Diverged for values that are not finite, OverLimit when Redis is out of memory.
func (s *Store) PushUpdate(ctx context.Context, u disdel.Update) error {
	data, err := encode(u)
	if err != nil {
		return err
	}
	return wrap(s.put(ctx, u.ID.Job, s.keys.update(u.ID), data), "push update", u.ID.String())
}

// FetchUpdate reads an update and checks it against the names and shapes of like. It returns NotFound if it was not
// pushed, Corrupt or Diverged if it is not to be used.
func (s *Store) FetchUpdate(ctx context.Context, id disdel.UpdateID, like disdel.Weights) (disdel.Update, error) {
	data, err := s.get(ctx, s.keys.update(id))
	if err != nil {
		return disdel.Update{}, wrap(err, "fetch update", id.String())
	}
	return decode(data, id, like)
}

// referenceID gives references the envelope of updates, at a level that no tree reaches.
func referenceID(job disdel.JobID, round int) disdel.UpdateID {
	return disdel.UpdateID{Job: job, Round: round, Level: 1<<31 - 1}
}

// PutReference publishes the weights that round starts from.
func (s *Store) PutReference(ctx context.Context, job disdel.JobID, round int, w disdel.Weights) error {
	data, err := encode(disdel.Update{ID: referenceID(job, round), Samples: 1, Weights: w})
	if err != nil {
		return err
	}
	return wrap(s.put(ctx, job, s.keys.reference(job, round), data), "publish reference", fmt.Sprintf("%s round %d", job, round))
}

// Reference reads the weights that round starts from and checks them against like. It returns NotFound before they are
// published.
func (s *Store) Reference(ctx context.Context, job disdel.JobID, round int, like disdel.Weights) (disdel.Weights, error) {
	data, err := s.get(ctx, s.keys.reference(job, round))
	if err != nil {
		return nil, wrap(err, "fetch reference", fmt.Sprintf("%s round %d", job, round))
	}
	u, err := decode(data, referenceID(job, round), like)
	return u.Weights, err
}

// Reduce takes the weighted mean of members in their order, one update in memory at a time. The result has no id yet.
func (s *Store) Reduce(ctx context.Context, members []disdel.UpdateID, like disdel.Weights) (disdel.Update, error) {
	var mean Mean
	for _, id := range members {
		u, err := s.FetchUpdate(ctx, id, like)
		if err != nil {
			return disdel.Update{}, err
		}
		if err := mean.Add(u.Weights, u.Samples); err != nil {
			return disdel.Update{}, err
		}
	}
	w, samples := mean.Result()
	return disdel.Update{Samples: samples, Weights: w}, nil
}

// DropRound deletes the updates of a round and the reference it started from: what no later action will read.
func (s *Store) DropRound(ctx context.Context, job disdel.JobID, round int) error {
	all, err := s.client.SMembers(ctx, s.keys.index(job)).Result()
	if err != nil {
		return wrap(err, "drop round", string(job))
	}
	updates, reference := fmt.Sprintf("%s:update:%d:", s.keys.job(job), round), s.keys.reference(job, round)
	var old []string
	for _, key := range all {
		if strings.HasPrefix(key, updates) || key == reference || strings.HasPrefix(key, reference+":") {
			old = append(old, key)
		}
	}
	return wrap(s.delete(ctx, job, old), "drop round", string(job))
}

func (s *Store) delete(ctx context.Context, job disdel.JobID, list []string) error {
	if len(list) == 0 {
		return nil
	}
	members := make([]any, len(list))
	for i, k := range list {
		members[i] = k
	}
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, list...)
		p.SRem(ctx, s.keys.index(job), members...)
		return nil
	})
	return err
}

// Heartbeat stores how far an action is, and returns whether the job was cancelled.
func (s *Store) Heartbeat(ctx context.Context, job disdel.JobID, p disdel.Progress) (cancel bool, err error) {
	data, err := json.Marshal(p)
	if err != nil {
		return false, &disdel.Error{Kind: disdel.Diverged, Op: "send heartbeat", Job: job, Err: err} // a loss that is no number
	}
	var flag *redis.IntCmd
	_, err = s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.HSet(ctx, s.keys.progress(job), fmt.Sprintf("%s/%d", p.Task, p.Member), data)
		pipe.Expire(ctx, s.keys.progress(job), keyLife)
		pipe.SAdd(ctx, s.keys.index(job), s.keys.progress(job))
		pipe.Expire(ctx, s.keys.index(job), keyLife)
		flag = pipe.Exists(ctx, s.keys.cancel(job))
		return nil
	})
	if err != nil {
		return false, wrap(err, "send heartbeat", string(job))
	}
	return flag.Val() > 0, nil
}

// Progress is the last heartbeat of every action of the newest round, train before the rest, by member.
func (s *Store) Progress(ctx context.Context, job disdel.JobID) ([]disdel.Progress, error) {
	all, err := s.client.HGetAll(ctx, s.keys.progress(job)).Result()
	if err != nil {
		return nil, wrap(err, "read progress", string(job))
	}
	out := make([]disdel.Progress, 0, len(all))
	newest := 0
	for name, text := range all {
		var p disdel.Progress
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return nil, &disdel.Error{Kind: disdel.Corrupt, Op: "read progress", Job: job, Msg: name, Err: err}
		}
		newest = max(newest, p.Round)
		out = append(out, p)
	}
	out = slices.DeleteFunc(out, func(p disdel.Progress) bool { return p.Round < newest })
	sort.Slice(out, func(i, j int) bool {
		return out[i].Task > out[j].Task || out[i].Task == out[j].Task && out[i].Member < out[j].Member
	})
	return out, nil
}

// Cancel has every action of the job told, at its next heartbeat, to stop.
func (s *Store) Cancel(ctx context.Context, job disdel.JobID) error {
	return wrap(s.set(ctx, job, s.keys.cancel(job), []byte("1")), "cancel job", string(job))
}

// Sweep deletes every key of the job and returns how many there were.
func (s *Store) Sweep(ctx context.Context, job disdel.JobID) (int, error) {
	all, err := s.client.SMembers(ctx, s.keys.index(job)).Result()
	if err != nil {
		return 0, wrap(err, "sweep job", string(job))
	}
	n, err := s.client.Del(ctx, append(all, s.keys.index(job))...).Result()
	return int(n), wrap(err, "sweep job", string(job))
}
