package modelstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
)

// Metric returns the figure by which the versions of the model's name are ranked.
func (m *Model) Metric() disdel.Metric {
	if metric, ok := disdel.FindMetric(m.RankedBy); ok {
		return metric
	}
	return m.Data.Metric("")
}

// Measured tells whether held-out rows showed how good the model is: a job whose last evaluation failed has a model,
// too.
func (m *Model) Measured() bool { return m.Data.HeldOut > 0 && (m.Evaluated == nil || *m.Evaluated) }

// Figures returns what held-out rows showed of the model.
func (m *Model) Figures() disdel.Figures {
	f := disdel.Figures{Loss: &m.Loss, Accuracy: &m.Accuracy, Scores: m.Scores}
	if m.Data.Numbers() {
		f.Accuracy = nil
	}
	return f
}

// Best is the best model by the metric of the newest one, for example the highest accuracy or the least RMSE; of equal
// models the one with the least loss, then the newest.
// Models that no held-out rows measured are not compared; ok is false if no model is left.
func Best(list []Model) (best Model, ok bool) {
	var newest *Model
	for i := range list {
		if m := &list[i]; m.Measured() && (newest == nil || m.Version > newest.Version) {
			newest = m
		}
	}
	if newest == nil {
		return best, false
	}
	metric := newest.Metric()
	rank := func(m *Model) float64 { return metric.Rank(metric.Value(m.Figures())) }
	for i := range list {
		if m := &list[i]; m.Measured() && (!ok || cmp.Or(cmp.Compare(rank(m), rank(&best)),
			cmp.Compare(m.Loss, best.Loss), cmp.Compare(best.Version, m.Version)) < 0) {
			best, ok = *m, true
		}
	}
	return best, ok
}

// Versions returns the versions of a name, newest first. The error names the versions that cannot be read; the list
// leaves them out.
func (s *Store) Versions(ctx context.Context, name string) (out []Model, err error) {
	for m, fault := range s.versionsOf(ctx, name) {
		if fault != nil {
			err = errors.Join(err, fault)
			continue
		}
		out = append(out, m)
	}
	return out, err
}

// VersionOf returns the newest version of a name that a job made, 0 if it made none. It skips damaged versions.
func (s *Store) VersionOf(ctx context.Context, name string, job disdel.JobID) (int, error) {
	for m, err := range s.versionsOf(ctx, name) {
		switch {
		case err != nil && disdel.KindOf(err) != disdel.Corrupt:
			return 0, err
		case err == nil && m.Job == job:
			return m.Version, nil
		}
	}
	return 0, nil
}

// versionsOf yields the models of Versions one by one, and an error for each version that cannot be read.
func (s *Store) versionsOf(ctx context.Context, name string) iter.Seq2[Model, error] {
	return func(yield func(Model, error) bool) {
		numbers, err := s.versions(ctx, name)
		var tags map[int][]string
		if err == nil {
			tags, err = s.tags(ctx, name)
		}
		if err != nil {
			yield(Model{}, err)
			return
		}
		for _, v := range slices.Backward(numbers) {
			m, err := s.read(ctx, name, v)
			if disdel.KindOf(err) == disdel.NotFound { // removed meanwhile
				continue
			}
			m.Tags = tags[v]
			if !yield(m, err) {
				return
			}
		}
	}
}

// Prune removes the oldest versions of a name and keeps the newest keep of them. It also keeps the best version, the
// version that the name alone means, versions with tags, and versions that it cannot read. It returns the removed
// versions, oldest first, also after an error.
func (s *Store) Prune(ctx context.Context, name string, keep int) (removed []Model, err error) {
	numbers, err := s.versions(ctx, name)
	if err != nil || len(numbers) <= max(keep, 1) {
		return nil, err
	}
	newest := numbers[len(numbers)-max(keep, 1)]
	list, _ := s.Versions(ctx, name) // what is damaged is no reason to keep or lose the others
	best, _ := Best(list)
	chosen := s.newest(ctx, name, numbers)
	for i := range slices.Backward(list) {
		m := &list[i]
		if m.Version >= newest || m.Version == best.Version || m.Version == chosen || len(m.Tags) > 0 {
			continue
		}
		if err := s.remove(ctx, m); err != nil && disdel.KindOf(err) != disdel.NotFound {
			return removed, err
		}
		removed = append(removed, *m)
	}
	return removed, nil
}

// remove deletes the checksum first, as a checksum without its description is damage. Weights come last: without a
// description they belong to no model. A description that is damaged does not name them.
func (s *Store) remove(ctx context.Context, m *Model) error {
	key := descriptionPath(m.Name, m.Version)
	if err := s.deleteIfThere(ctx, "remove model", key+sumSuffix); err != nil {
		return err
	}
	if m.Path == "" {
		return s.deleteIfThere(ctx, "remove model", key)
	}
	if err := s.bucket.Delete(ctx, key); err != nil {
		return blobs.Wrap(err, "remove model", key)
	}
	return blobs.Wrap(s.bucket.Delete(ctx, m.Path), "remove weights", m.Path)
}

// BestTag is the tag of the best version of a name. Other tags are files with the number of a version; NAME:TAG then
// means that version. BestTag needs no file.
const BestTag = "best"

var tagForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]{2,30}$`) })

// numbered are words that could be taken for versions.
var numbered = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^v?\d+$`) })

const largestTag = 32 // bytes of its file

func tagFolder(name string) string { return path.Join("models", name, "tags") + "/" }

// Tag gives a tag to a version. The tag then means no other version. It returns Invalid for a word that cannot be a
// tag, and the errors of Get.
func (s *Store) Tag(ctx context.Context, ref, tag string) (Model, error) {
	if !tagForm().MatchString(tag) || numbered().MatchString(tag) || tag == BestTag {
		return Model{}, &disdel.Error{
			Kind: disdel.Invalid, Op: "tag model", Msg: fmt.Sprintf("%.40q is no tag", tag),
			Hint: "a tag is a word of three small letters, digits and dashes or more, such as prod; " + BestTag +
				" is always the best version",
		}
	}
	m, err := s.Get(ctx, ref)
	if err != nil {
		return m, err
	}
	key := tagFolder(m.Name) + tag
	return m, blobs.Wrap(blobs.WriteAll(ctx, s.bucket, key, fmt.Appendf(nil, "v%d\n", m.Version)), "tag model", key)
}

// tagged is the version that a tag means.
func (s *Store) tagged(ctx context.Context, name, tag string) (int, error) {
	if tag == BestTag {
		return s.best(ctx, name)
	}
	version, err := s.number(ctx, tagFolder(name)+tag)
	if disdel.KindOf(err) == disdel.NotFound {
		return 0, &disdel.Error{
			Kind: disdel.NotFound, Op: "find model", Msg: fmt.Sprintf("%s has no version that is %s", name, tag),
			Hint: fmt.Sprintf("disdel model promote %s:vN %s", name, tag),
		}
	}
	return version, err
}

// number reads the number of a version from a file of nothing else. It returns NotFound and Corrupt.
func (s *Store) number(ctx context.Context, key string) (int, error) {
	data, err := blobs.ReadUpTo(ctx, s.bucket, key, largestTag)
	if err != nil {
		return 0, blobs.Wrap(err, "read version", key)
	}
	text, found := strings.CutPrefix(strings.TrimSpace(string(data)), "v")
	version, err := strconv.Atoi(text)
	if err != nil || !found || version < 1 {
		return 0, &disdel.Error{
			Kind: disdel.Corrupt, Op: "read version", Msg: fmt.Sprintf("%s says %.40q, which is no version", key, data),
			Hint: "write it anew: disdel model promote NAME:vN TAG",
		}
	}
	return version, nil
}

// lastKey is where the newest of a name's versions is noted that were removed by hand: its number is not given again.
func lastKey(name string) string { return path.Join("models", name, "last") }

// best is the version that is the best of those that were measured.
func (s *Store) best(ctx context.Context, name string) (int, error) {
	list, err := s.Versions(ctx, name)
	if len(list) == 0 && err != nil {
		return 0, err
	}
	best, ok := Best(list)
	if !ok {
		return 0, &disdel.Error{
			Kind: disdel.NotFound, Op: "find model",
			Msg: fmt.Sprintf("no version of %q was measured on rows that were held out", name), Hint: "disdel model list",
		}
	}
	return best.Version, nil
}

// tags is what a name's tags mean: words by version, in their order. What is damaged means nothing.
func (s *Store) tags(ctx context.Context, name string) (map[int][]string, error) {
	out := map[int][]string{}
	for obj, err := range s.bucket.List(ctx, tagFolder(name)) {
		if err != nil {
			return nil, blobs.Wrap(err, "list tags", name)
		}
		tag := path.Base(obj.Key)
		if !tagForm().MatchString(tag) || obj.Key != tagFolder(name)+tag {
			continue
		}
		if version, err := s.tagged(ctx, name, tag); err == nil {
			out[version] = append(out[version], tag)
		}
	}
	for _, list := range out {
		slices.Sort(list)
	}
	return out, nil
}

// Remove deletes a version, whose number is never given again. Of a damaged version the weights stay. It returns what
// Get returns, and Conflict for a version that a tag means.
func (s *Store) Remove(ctx context.Context, ref string) (Model, error) {
	m, err := s.Get(ctx, ref)
	if err != nil && (disdel.KindOf(err) != disdel.Corrupt || m.Version == 0) {
		return m, err
	}
	tags, err := s.tags(ctx, m.Name)
	if err != nil {
		return m, err
	}
	if in := tags[m.Version]; len(in) > 0 {
		return m, &disdel.Error{
			Kind: disdel.Conflict, Op: "remove model",
			Msg:  fmt.Sprintf("%s is %s", m.Ref(), strings.Join(in, " and ")),
			Hint: fmt.Sprintf("give the tag to another version first: disdel model promote %s:vN %s", m.Name, in[0]),
		}
	}
	last, err := s.number(ctx, lastKey(m.Name))
	if err != nil && disdel.KindOf(err) != disdel.NotFound {
		return m, err
	}
	if m.Version > last {
		text := fmt.Appendf(nil, "v%d\n", m.Version)
		if err := blobs.WriteAll(ctx, s.bucket, lastKey(m.Name), text); err != nil {
			return m, blobs.Wrap(err, "remove model", m.Ref())
		}
	}
	return m, s.remove(ctx, &m)
}

// newest is the version that a name alone means: the newest that learned something or whose training result is unknown,
// else the newest of all.
func (s *Store) newest(ctx context.Context, name string, versions []int) int {
	for _, v := range slices.Backward(versions) {
		m, err := s.Get(ctx, fmt.Sprintf("%s:v%d", name, v))
		if err != nil || m.Learned == nil || *m.Learned {
			return v
		}
	}
	return versions[len(versions)-1]
}

// UpdateDescription replaces the description of a version, for example after an evaluation. The weights stay as they
// are.
func (s *Store) UpdateDescription(ctx context.Context, m Model) error {
	m.Tags = nil // which are files of their own
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "describe model", Msg: m.Name, Err: err}
	}
	key := descriptionPath(m.Name, m.Version)
	// Without a checksum beside it a description is as good as one of an earlier version; with another's it is damaged.
	if err := s.deleteIfThere(ctx, "describe model", key+sumSuffix); err != nil {
		return err
	}
	if err := blobs.WriteAll(ctx, s.bucket, key, data); err != nil {
		return blobs.Wrap(err, "describe model", key)
	}
	sum := sha256.Sum256(data)
	return blobs.Wrap(blobs.WriteAll(ctx, s.bucket, key+sumSuffix, []byte(checksum(sum[:])+"\n")), "describe model", key)
}
