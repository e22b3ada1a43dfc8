package export

import (
	"context"
	"crypto/sha1" //nolint:gosec // git's checksum of small files
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
)

// HubRef names a model of a hub, hf://ORG/NAME[@REVISION], or a file of a data set,
// hf://datasets/ORG/NAME[@REVISION][/FILE].
type HubRef struct {
	Dataset  bool
	Repo     string // ORG/NAME
	Revision string // a branch, a tag or a commit
	File     string // of a data set; "": its only Parquet file
}

const (
	hubScheme   = "hf://"
	hubDatasets = "datasets/"
)

// IsHubRef tells whether a text names something of a hub.
func IsHubRef(text string) bool { return strings.HasPrefix(text, hubScheme) }

var (
	hubRepo     = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9_.]*(/[A-Za-z0-9][-A-Za-z0-9_.]*)?$`)
	hubRevision = regexp.MustCompile(`^[A-Za-z0-9~][-A-Za-z0-9_./~]*$`)
	hubFile     = regexp.MustCompile(`^[A-Za-z0-9_][-A-Za-z0-9_.=+/ ]*$`)
)

// ParseHubRef reads a HubRef. The revision is main if there is none, and ~parquet is the branch into which the hub
// converts data sets. It returns Invalid for other texts.
func ParseHubRef(text string) (r HubRef, err error) {
	rest := strings.TrimPrefix(text, hubScheme)
	rest, r.Dataset = strings.CutPrefix(rest, hubDatasets)
	repo, after, pinned := strings.Cut(rest, "@")
	r.Revision = "main"
	if parts := strings.SplitN(repo, "/", 3); !pinned && r.Dataset && len(parts) == 3 {
		repo, r.File = parts[0]+"/"+parts[1], parts[2]
	}
	if pinned && r.Dataset {
		r.Revision, r.File, _ = strings.Cut(after, "/")
	} else if pinned {
		r.Revision = after
	}
	if r.Repo = repo; r.Revision == "~parquet" {
		r.Revision = "refs/convert/parquet"
	}
	if !IsHubRef(text) || !hubRepo.MatchString(r.Repo) || !hubRevision.MatchString(r.Revision) ||
		r.File != "" && !hubFile.MatchString(r.File) || strings.Contains(r.Repo+r.Revision+r.File, "..") {
		return r, &disdel.Error{
			Kind: disdel.Invalid, Op: "read address", Msg: fmt.Sprintf("%.200q names nothing of a hub", text),
			Hint: "write hf://ORG/NAME@REVISION, or hf://datasets/ORG/NAME@REVISION/FILE.parquet",
		}
	}
	return r, nil
}

// Hub is a server of models and data sets.
type Hub struct {
	URL   string // of the hub or a mirror; "": https://huggingface.co
	Token string // of the reader; "": none
	HTTP  *http.Client
	Say   func(format string, args ...any) // told what is fetched
	Wait  time.Duration                    // before a cut connection is tried again; 0: a second
}

const (
	hubAddress  = "https://huggingface.co"
	hubPatience = time.Minute // without a byte
	hubAttempts = 8           // in a row that bring nothing
	mostListing = 32 << 20    // bytes of the list of files
	mostFetched = 10_000      // files of a repository
)

// hubListed is a file of a repository.
type hubListed struct {
	Name string `json:"rfilename"`
	Size int64  `json:"size"`
	Blob string `json:"blobId"`
	LFS  *struct {
		SHA256 string `json:"sha256"`
		Size   int64  `json:"size"`
	} `json:"lfs"`
}

var hubShard = regexp.MustCompile(`^model-\d{5}-of-\d{5}\.safetensors$`)

// wantedOf tells whether a file of a model is fetched: no code and no pickle is.
func wantedOf(name string) bool {
	return slices.Contains(keptFiles, name) || hubShard.MatchString(name) || slices.Contains([]string{
		HubWeightsFile, HubWeightsFile + ".index.json", tokenizerFile, "vocab.txt", "vocab.json", "merges.txt",
	}, name)
}

// FetchModel fetches the files of a model to a folder below parent, and returns the folder and the commit. A later call
// goes on where an earlier one was cut off, and fetches no file twice.
//
// It returns Invalid for a repository without safetensors, NotFound, Denied, Unavailable, NoSpace, and Corrupt for a
// file that is not what the hub lists.
func (h *Hub) FetchModel(ctx context.Context, ref HubRef, parent string) (folder, commit string, err error) {
	commit, list, err := h.list(ctx, ref)
	if err != nil {
		return "", "", err
	}
	all := len(list)
	list = slices.DeleteFunc(list, func(f hubListed) bool { return !wantedOf(f.Name) })
	if !slices.ContainsFunc(list, func(f hubListed) bool { return strings.HasSuffix(f.Name, ".safetensors") }) {
		return "", "", hubError(
			fmt.Sprintf("%s has %d files, and none is safetensors; disdel reads no pickle", ref.Repo, all),
			"look for a revision with model.safetensors: hf://ORG/NAME@REVISION", nil)
	}
	folder, err = h.fetch(ctx, ref, commit, list, parent)
	return folder, commit, err
}

// FetchData fetches a Parquet file of a data set, as FetchModel does, and returns its path.
func (h *Hub) FetchData(ctx context.Context, ref HubRef, parent string) (file, commit string, err error) {
	commit, list, err := h.list(ctx, ref)
	if err != nil {
		return "", "", err
	}
	list = slices.DeleteFunc(list, func(f hubListed) bool {
		return !strings.HasSuffix(f.Name, ".parquet") || ref.File != "" && f.Name != ref.File || !filepath.IsLocal(f.Name)
	})
	if len(list) != 1 {
		names := make([]string, 0, 20)
		for _, f := range list[:min(len(list), cap(names))] {
			names = append(names, f.Name)
		}
		return "", "", hubError(
			fmt.Sprintf("%s has %d such Parquet files: %s", ref.Repo, len(list), strings.Join(names, ", ")),
			"name one: hf://datasets/ORG/NAME@REVISION/FILE.parquet; @~parquet is what the hub converted", nil)
	}
	folder, err := h.fetch(ctx, ref, commit, list, parent)
	return filepath.Join(folder, filepath.FromSlash(list[0].Name)), commit, err
}

// kind is the part of addresses that tells data sets from models.
func (r HubRef) kind() string {
	if r.Dataset {
		return hubDatasets
	}
	return ""
}

// list returns the commit of a revision, and its files.
func (h *Hub) list(ctx context.Context, ref HubRef) (commit string, list []hubListed, err error) {
	kind := "models/"
	if ref.Dataset {
		kind = hubDatasets
	}
	address := "api/" + kind + ref.Repo + "/revision/" + url.PathEscape(ref.Revision) + "?blobs=true"
	res, err := h.get(ctx, address, 0)
	if err != nil {
		return "", nil, h.refused(ref, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", nil, h.refused(ref, statusError(res.StatusCode))
	}
	var doc struct {
		Commit string      `json:"sha"`
		Files  []hubListed `json:"siblings"`
	}
	err = json.NewDecoder(io.LimitReader(res.Body, mostListing)).Decode(&doc)
	if err != nil || !hubCommit.MatchString(doc.Commit) || len(doc.Files) > mostFetched {
		return "", nil, &disdel.Error{
			Kind: disdel.Corrupt, Op: "fetch " + ref.Repo, Msg: "the hub's list of files is damaged", Err: err,
			Hint: "check the address of the hub (--hub, HF_ENDPOINT)",
		}
	}
	return doc.Commit, doc.Files, nil
}

var hubCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// statusError is an HTTP status.
type statusError int

func (s statusError) Error() string { return strings.ToLower(http.StatusText(int(s))) }

// refused explains why a hub does not answer as it should.
func (h *Hub) refused(ref HubRef, err error) error {
	e := &disdel.Error{
		Kind: disdel.Unavailable, Op: "fetch " + ref.Repo, Msg: "ask " + disdel.Redacted(h.base()), Err: err,
		Hint: "try again: what was fetched is kept; name a mirror with --hub or HF_ENDPOINT",
	}
	var status statusError
	switch errors.As(err, &status); int(status) {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Kind, e.Hint = disdel.Denied, "set HF_TOKEN, and accept the conditions of the model on its page; a repository "+
			"that does not exist is refused in the same way"
	case http.StatusNotFound:
		e.Kind, e.Hint = disdel.NotFound, "check the name and the revision: hf://ORG/NAME@REVISION"
	}
	return e
}

func (h *Hub) base() string {
	if h.URL == "" {
		return hubAddress
	}
	return strings.TrimSuffix(h.URL, "/")
}

// get asks for an address below the hub's, from a byte on. The token goes to the hub only, and not in the clear.
func (h *Hub) get(ctx context.Context, path string, from int64) (*http.Response, error) {
	base, err := url.Parse(h.base())
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" {
		return nil, errors.New("it is no http:// or https:// address")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String()+"/"+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "identity")
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	if h.Token != "" {
		if host := base.Hostname(); base.Scheme == "http" && host != "localhost" && host != "127.0.0.1" && host != "::1" {
			return nil, errors.New("HF_TOKEN is not sent over http://; use https://")
		}
		req.Header.Set("Authorization", "Bearer "+h.Token)
	}
	client := http.Client{}
	if h.HTTP != nil {
		client = *h.HTTP
	}
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		switch {
		case base.Scheme == "https" && req.URL.Scheme != "https":
			return errors.New("it redirects to an address without TLS")
		case len(via) > 5:
			return errors.New("it redirects too often")
		case req.URL.Host != base.Host:
			req.Header.Del("Authorization")
		}
		return nil
	}
	res, err := client.Do(req)
	var where *url.Error
	if errors.As(err, &where) { // its address may have a signature
		err = where.Err
	}
	return res, err
}

// HubFolder is the name of the folder that files of a repository are fetched to, a folder for each commit in it.
func HubFolder(ref HubRef) string { return strings.ReplaceAll(ref.kind()+ref.Repo, "/", "--") }

// fetch fetches files to a folder of this commit.
func (h *Hub) fetch(ctx context.Context, ref HubRef, commit string, list []hubListed, parent string) (string, error) {
	folder := filepath.Join(parent, HubFolder(ref), commit)
	total := int64(0)
	for i := range list {
		f := &list[i]
		if f.LFS != nil {
			f.Size = f.LFS.Size
		}
		if f.Size < 0 || f.Size > 1<<50 {
			return "", unlikeListed(f.Name, fmt.Sprintf("the hub lists %d bytes", f.Size))
		}
		total += f.Size
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", &disdel.Error{Kind: disdel.Unavailable, Op: "fetch " + ref.Repo, Err: err}
	}
	if free := files.Free(folder); disdel.Bytes(total) > free {
		return "", &disdel.Error{
			Kind: disdel.NoSpace, Op: "fetch " + ref.Repo,
			Msg:  fmt.Sprintf("the files have %v, and %s has room for %v", disdel.Bytes(total), parent, free),
			Hint: "make room, or name another home (--home)",
		}
	}
	h.Say("fetching %s at %s: %d files, %v", ref.Repo, commit, len(list), disdel.Bytes(total))
	for i := range list {
		if err := h.fetchFile(ctx, ref, commit, &list[i], folder); err != nil {
			return "", err
		}
	}
	return folder, nil
}

func unlikeListed(name, why string) error {
	return &disdel.Error{
		Kind: disdel.Corrupt, Op: "fetch " + name, Msg: why, Hint: "fetch it again; if it stays so, the hub is at fault",
	}
}

// fetchFile fetches one file, over as many connections as it takes.
func (h *Hub) fetchFile(ctx context.Context, ref HubRef, commit string, f *hubListed, folder string) error {
	path := filepath.Join(folder, filepath.FromSlash(f.Name))
	if info, err := os.Stat(path); err == nil && info.Size() == f.Size {
		return nil // it was checked when it got its name
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "fetch " + f.Name, Err: err}
	}
	part, err := os.OpenFile(path+".part", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "fetch " + f.Name, Err: err}
	}
	defer part.Close()
	address := ref.kind() + ref.Repo + "/resolve/" + commit + "/" + (&url.URL{Path: f.Name}).EscapedPath()
	for failed := 0; ; {
		have, err := part.Seek(0, io.SeekEnd)
		if err == nil && have > f.Size { // of another list
			have, err = 0, part.Truncate(0)
		}
		if err != nil {
			return &disdel.Error{Kind: disdel.Unavailable, Op: "fetch " + f.Name, Err: err}
		}
		if have == f.Size {
			break
		}
		n, err := h.fetchRest(ctx, address, part, have, f)
		if err == nil {
			continue
		}
		if failed++; n > 0 {
			failed = 0
		}
		var status statusError
		permanent := errors.As(err, &status) && status < 500 && status != http.StatusTooManyRequests
		if disdel.KindOf(err) == disdel.Corrupt {
			return err
		}
		if ctx.Err() != nil || permanent || failed >= hubAttempts || files.DiskFull(err) {
			return h.refused(ref, errors.Join(err, context.Cause(ctx)))
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(h.Wait, time.Millisecond) << min(failed, 6)):
		}
	}
	if err := check(part, f); err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	if err := os.Rename(part.Name(), path); err != nil {
		return &disdel.Error{Kind: disdel.Unavailable, Op: "fetch " + f.Name, Err: err}
	}
	return nil
}

// fetchRest adds to part what follows its bytes, and returns how many bytes came.
func (h *Hub) fetchRest(ctx context.Context, address string, part *os.File, have int64, f *hubListed) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(hubPatience, func() { cancel(errors.New("the hub sent nothing for a minute")) })
	defer silence.Stop()
	res, err := h.get(ctx, address, have)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	switch begin := fmt.Sprintf("bytes %d-", have); {
	case res.StatusCode == http.StatusPartialContent && strings.HasPrefix(res.Header.Get("Content-Range"), begin):
	case res.StatusCode == http.StatusOK: // the whole file, from servers that know no ranges
		if have, err = part.Seek(0, io.SeekStart); err == nil {
			err = part.Truncate(0)
		}
		if err != nil {
			return 0, err
		}
	case res.StatusCode == http.StatusPartialContent:
		return 0, unlikeListed(f.Name, "the hub sent another part than it was asked for")
	default:
		return 0, statusError(res.StatusCode)
	}
	n, err := io.Copy(part, io.LimitReader(&noticed{res.Body, func() { silence.Reset(hubPatience) }}, f.Size-have+1))
	if have+n > f.Size {
		return n, errors.Join(unlikeListed(f.Name, fmt.Sprintf("it has more than the %d bytes that the hub lists", f.Size)),
			part.Truncate(0))
	}
	if err == nil && have+n < f.Size {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// noticed calls a function after each read.
type noticed struct {
	io.Reader
	call func()
}

func (n *noticed) Read(p []byte) (int, error) {
	defer n.call()
	return n.Reader.Read(p)
}

// check compares a file with the checksum that the hub lists: SHA-256 of large files, git's SHA-1 of small ones.
func check(part *os.File, f *hubListed) error {
	var sum hash.Hash
	var want string
	switch {
	case f.LFS != nil && len(f.LFS.SHA256) == 2*sha256.Size:
		sum, want = sha256.New(), f.LFS.SHA256
	case len(f.Blob) == 2*sha1.Size:
		sum, want = sha1.New(), f.Blob //nolint:gosec // as above
		fmt.Fprintf(sum, "blob %d\x00", f.Size)
	default:
		return unlikeListed(f.Name, "the hub lists no checksum of it")
	}
	if _, err := part.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(sum, part); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != strings.ToLower(want) {
		return unlikeListed(f.Name, fmt.Sprintf("it has the checksum %s, and the hub lists %.64s", got, want))
	}
	return nil
}
