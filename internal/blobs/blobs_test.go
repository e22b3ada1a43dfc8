package blobs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/disdel/disdel"
)

// addresses are one bucket of each kind, that of S3 in front of another's server.
func addresses(t *testing.T) map[string]string {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	backend := s3mem.New()
	if err := backend.CreateBucket("sets"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	return map[string]string{
		"file": "file://" + t.TempDir() + "/new",
		"mem":  "mem://",
		"s3": "s3://sets?region=x&use_path_style=true&response_checksum_validation=when_required&prefix=below/&endpoint=" +
			server.URL,
	}
}

// each runs a test on a bucket of each kind.
func each(t *testing.T, test func(t *testing.T, b Bucket)) {
	for kind, address := range addresses(t) {
		t.Run(kind, func(t *testing.T) {
			b, err := Open(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			test(t, b)
		})
	}
}

func write(t *testing.T, b Bucket, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := WriteAll(t.Context(), b, key, []byte(key)); err != nil {
			t.Fatal(key, err)
		}
	}
}

func listed(t *testing.T, b Bucket, prefix string) (keys []string) {
	t.Helper()
	for o, err := range b.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		if o.Size != int64(len(o.Key)) {
			t.Errorf("%s: %d bytes", o.Key, o.Size)
		}
		if age := time.Since(o.Written); age < -time.Hour || age > time.Hour {
			t.Errorf("%s was written %v ago", o.Key, age)
		}
		keys = append(keys, o.Key)
	}
	return keys
}

func TestWhatWasWrittenIsRead(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	each(t, func(t *testing.T, b Bucket) {
		for _, size := range []int{0, 1, 511, 513, partSize - 1, partSize, partSize + 1, 2*partSize + 7} {
			want := make([]byte, size)
			for i := range want {
				want[i] = byte(r.Uint32())
			}
			if err := WriteAll(t.Context(), b, "a/b", want); err != nil {
				t.Fatal(size, err)
			}
			got, err := ReadAll(t.Context(), b, "a/b")
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes: %d, %v", size, len(got), err)
			}
			if n, err := b.Size(t.Context(), "a/b"); n != int64(size) || err != nil {
				t.Errorf("%d bytes: %d, %v", size, n, err)
			}
			if got, err := ReadUpTo(t.Context(), b, "a/b", 3); len(got) != min(size, 4) || err != nil {
				t.Errorf("of %d bytes %d, %v", size, len(got), err)
			}
		}
	})
}

func TestKeysAreListedByPrefix(t *testing.T) {
	each(t, func(t *testing.T, b Bucket) {
		write(t, b, "a/1/x", "a/1/y", "a/2/x", "a/top", "ab/1/x", "b")
		for prefix, want := range map[string][]string{
			"": {"a/1/x", "a/1/y", "a/2/x", "a/top", "ab/1/x", "b"}, "a/": {"a/1/x", "a/1/y", "a/2/x", "a/top"},
			"a/1/": {"a/1/x", "a/1/y"}, "a/1/y": {"a/1/y"}, "c/": nil, "a/2/x/": nil,
		} {
			if diff := cmp.Diff(want, listed(t, b, prefix)); diff != "" {
				t.Errorf("%q: %s", prefix, diff)
			}
		}
		for prefix, want := range map[string][]string{"": {"a", "ab"}, "a/": {"1", "2"}, "a/1/": nil, "c/": nil} {
			got, err := b.Folders(t.Context(), prefix)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("folders of %q: %s %v", prefix, diff, err)
			}
		}
	})
}

// A prefix that no folder can have lists nothing, and is no error.
func TestAPrefixBelowAKeyListsNothing(t *testing.T) {
	each(t, func(t *testing.T, b Bucket) {
		write(t, b, "a/file")
		for _, prefix := range []string{"a/file/b/", strings.Repeat("n", 300) + "/"} {
			if keys := listed(t, b, prefix); len(keys) > 0 {
				t.Errorf("%s: %v", prefix, keys)
			}
		}
	})
}

func TestDeletedKeysAreGone(t *testing.T) {
	each(t, func(t *testing.T, b Bucket) {
		write(t, b, "a/1", "a/2")
		if err := b.Delete(t.Context(), "a/1"); err != nil {
			t.Fatal(err)
		}
		if err := Wrap(b.Delete(t.Context(), "a/1"), "delete", "a/1"); err != nil && disdel.KindOf(err) != disdel.NotFound {
			t.Error(err)
		}
		_, err := ReadAll(t.Context(), b, "a/1")
		_, sized := b.Size(t.Context(), "a/1")
		for _, err := range []error{err, sized} {
			if disdel.KindOf(Wrap(err, "read", "a/1")) != disdel.NotFound {
				t.Error(err)
			}
		}
		if got := listed(t, b, ""); !cmp.Equal(got, []string{"a/2"}) {
			t.Error(got)
		}
	})
}

// Of many that create one key a single one does, and its content is what stays.
func TestAKeyIsCreatedOnce(t *testing.T) {
	each(t, func(t *testing.T, b Bucket) {
		var wait sync.WaitGroup
		faults := make([]error, 16)
		for i := range faults {
			wait.Go(func() { faults[i] = Wrap(b.Create(t.Context(), "models/1", fmt.Append(nil, i)), "create", "models/1") })
		}
		wait.Wait()
		winner := -1
		for i, err := range faults {
			switch {
			case err == nil && winner < 0:
				winner = i
			case disdel.KindOf(err) != disdel.Conflict:
				t.Errorf("%d: %v", i, err)
			}
		}
		got, err := ReadAll(t.Context(), b, "models/1")
		if err != nil || string(got) != fmt.Sprint(winner) {
			t.Errorf("%s, %v, by %d", got, err, winner)
		}
	})
}

// A writer whose context ends leaves what was there, however much it has written, and no file beside it.
func TestACanceledWriterLeavesTheOldContent(t *testing.T) {
	each(t, func(t *testing.T, b Bucket) {
		for _, size := range []int{0, 3, 2*partSize + 7} {
			write(t, b, "a/b")
			ctx, stop := context.WithCancel(t.Context())
			w, err := b.NewWriter(ctx, "a/b")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			stop()
			if err := Wrap(w.Close(), "write", "a/b"); disdel.KindOf(err) != disdel.Canceled {
				t.Errorf("%d bytes: %v", size, err)
			}
			got, err := ReadAll(t.Context(), b, "a/b")
			if string(got) != "a/b" || err != nil || !cmp.Equal(listed(t, b, ""), []string{"a/b"}) {
				t.Errorf("after %d bytes: %q, %v", size, got, err)
			}
		}
	})
}

// The parts of an upload that was given up are thrown away, since S3 keeps them for money.
func TestPartsOfACanceledUploadAreThrownAway(t *testing.T) {
	address := addresses(t)["s3"]
	backend, _, _ := strings.Cut(address[strings.Index(address, "endpoint=")+len("endpoint="):], "&")
	to, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	var begun, aborted, partsUp atomic.Int32
	part := make(chan struct{}, 8)
	through := httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case q.Has("uploads"):
			begun.Add(1)
		case q.Has("uploadId") && r.Method == http.MethodDelete:
			aborted.Add(1)
		case q.Has("partNumber"):
			partsUp.Add(1)
			defer func() { part <- struct{}{} }()
		}
		through.ServeHTTP(w, r)
	}))
	defer server.Close()
	b, err := Open(t.Context(), strings.Replace(address, backend, server.URL, 1))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	w, err := b.NewWriter(ctx, "large")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 3*partSize)); err != nil {
		t.Fatal(err)
	}
	<-part
	stop()
	if err := w.Close(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if begun.Load() != 1 || aborted.Load() != 1 || partsUp.Load() == 0 {
		t.Errorf("%d begun, %d aborted, %d parts", begun.Load(), aborted.Load(), partsUp.Load())
	}
}

func TestDraftsAreNoKeys(t *testing.T) {
	dir := t.TempDir()
	b, err := Open(t.Context(), "file://"+dir)
	if err != nil {
		t.Fatal(err)
	}
	w, err := b.NewWriter(t.Context(), "a/b")
	if err != nil {
		t.Fatal(err)
	}
	if got := listed(t, b, ""); got != nil {
		t.Errorf("half written: %v", got)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "a", "*")); len(files) != 1 {
		t.Errorf("%v", files)
	}
}

func TestNoKeyLeadsOutOfAFolder(t *testing.T) {
	outside := t.TempDir()
	b, err := Open(t.Context(), "file://"+outside+"/in/side")
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, key := range []string{"../a", "a/../../../b", "/a", "a//b", "", ".", "a/", "..", "a/./b"} {
		_, created := b.NewWriter(ctx, key)
		_, read := b.NewReader(ctx, key)
		_, sized := b.Size(ctx, key)
		for _, err := range []error{created, read, sized, b.Delete(ctx, key), b.Create(ctx, key, nil)} {
			if !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%q: %v", key, err)
			}
		}
	}
	if files, _ := filepath.Glob(filepath.Join(outside, "*")); len(files) != 1 {
		t.Errorf("%v", files)
	}
}

// A chunk may be a link to a file on another disk.
func TestLinksOfAFolderAreFollowed(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := errors.Join(os.WriteFile(elsewhere, []byte("1234567"), 0o600),
		os.Symlink(elsewhere, filepath.Join(dir, "a"))); err != nil {
		t.Fatal(err)
	}
	b, err := Open(t.Context(), "file://"+dir)
	if err != nil {
		t.Fatal(err)
	}
	data, err := ReadAll(t.Context(), b, "a")
	if string(data) != "1234567" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if n, err := b.Size(t.Context(), "a"); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestAddressesThatOpenNothing(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"": "is no blob URL", "home": "is no blob URL", "gs://sets": "there are no buckets of gs://",
		"file://" + file:                                           "not a directory",
		"s3://?region=x":                                           "no bucket is named",
		"s3://sets?region=x&size=9":                                `unknown option "size"; there are accelerate,`,
		"s3://sets?region=x&use_path_style=maybe":                  "use_path_style=maybe: it is true or false",
		"s3://sets?region=x&role=me":                               "no ARN, which begins with arn:",
		"s3://sets?region=x&response_checksum_validation=whenever": "when_required or when_supported",
		"s3://u:CANARY@sets?region=x&oops=1":                       "unknown option",
	} {
		_, err := Open(t.Context(), address)
		if err == nil || !strings.Contains(disdel.AsError(err).Error(), want) || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestWrapTellsKinds(t *testing.T) {
	for want, err := range map[disdel.Kind]error{
		disdel.NotFound: fs.ErrNotExist, disdel.Denied: fs.ErrPermission, disdel.Conflict: fs.ErrExist,
		disdel.Canceled: context.Canceled, disdel.NoSpace: syscall.ENOSPC, disdel.Unavailable: io.ErrUnexpectedEOF,
	} {
		got := disdel.AsError(Wrap(fmt.Errorf("write: %w", err), "write", "key"))
		if hints := want == disdel.Denied || want == disdel.NoSpace; got.Kind != want || (got.Hint != "") != hints {
			t.Errorf("%v: %v, not %v; hint %q", err, got.Kind, want, got.Hint)
		}
	}
	// A write that failed is given up, and the reason is what failed.
	both := errors.Join(&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, context.Canceled)
	if got := disdel.KindOf(Wrap(both, "write", "key")); got != disdel.NoSpace {
		t.Error(got)
	}
	if Wrap(nil, "write", "key") != nil {
		t.Error("no error became one")
	}
}

// What S3 refuses is refused here, and what it could not do is tried again.
func TestS3Answers(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked++; {
		case strings.HasSuffix(r.URL.Path, "denied"):
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<Error><Code>AccessDenied</Code><Message>no</Message></Error>`)
		case asked == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			fmt.Fprint(w, "content")
		}
	}))
	defer server.Close()
	b, err := Open(t.Context(), "s3://sets?region=x&use_path_style=true&endpoint="+server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := ReadAll(t.Context(), b, "key"); string(data) != "content" || err != nil || asked != 2 {
		t.Errorf("%q, %v, asked %d times", data, err, asked)
	}
	if _, err := ReadAll(t.Context(), b, "denied"); disdel.KindOf(Wrap(err, "read", "denied")) != disdel.Denied {
		t.Error(err)
	}
}

// What S3 has is what was sent, and what is read is what S3 has: both sides say a checksum, and another content than
// that is refused.
func TestS3ChecksumsAreSentAndHeld(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	var sent atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			if r.Header.Get("X-Amz-Trailer") != "" || r.Header.Get("X-Amz-Checksum-Crc32") != "" {
				sent.Add(1)
			}
			io.Copy(io.Discard, r.Body) //nolint:errcheck // a test's
			return
		}
		sum := crc32.ChecksumIEEE([]byte("content"))
		w.Header().Set("X-Amz-Checksum-Crc32", base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum)))
		if strings.HasSuffix(r.URL.Path, "damaged") {
			fmt.Fprint(w, "c0ntent")
			return
		}
		fmt.Fprint(w, "content")
	}))
	defer server.Close()
	b, err := Open(t.Context(), "s3://sets?region=x&use_path_style=true&endpoint="+server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteAll(t.Context(), b, "key", []byte("content")); err != nil || sent.Load() != 1 {
		t.Errorf("%v, %d checksums", err, sent.Load())
	}
	if data, err := ReadAll(t.Context(), b, "whole"); string(data) != "content" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := ReadAll(t.Context(), b, "damaged"); err == nil {
		t.Error("damaged content was read")
	}
}

// A part of a file that S3 could not take is sent again, and the file is whole.
func TestAPartIsSentAgain(t *testing.T) {
	address := addresses(t)["s3"]
	backend, _, _ := strings.Cut(address[strings.Index(address, "endpoint=")+len("endpoint="):], "&")
	to, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(to)
	var refused atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("partNumber") == "2" && refused.Add(1) == 1 {
			io.Copy(io.Discard, r.Body) //nolint:errcheck // a test's
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		through.ServeHTTP(w, r)
	}))
	defer server.Close()
	b, err := Open(t.Context(), strings.Replace(address, backend, server.URL, 1))
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("0123456789abcdef"), 3*partSize/16)
	if err := WriteAll(t.Context(), b, "large", want); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadAll(t.Context(), b, "large"); !bytes.Equal(got, want) || err != nil || refused.Load() != 2 {
		t.Errorf("%d bytes, %v, part 2 came %d times", len(got), err, refused.Load())
	}
}

// Keys with a prefix lie in a folder of its name, which is the folder of the address.
func TestAPrefixIsAFolder(t *testing.T) {
	dir := t.TempDir()
	for address, want := range map[string]string{
		"file://" + dir:                 dir,
		"file://" + dir + "?prefix=a/b": filepath.Join(dir, "a", "b"),
	} {
		b, err := Open(t.Context(), address)
		if err == nil {
			err = WriteAll(t.Context(), b, "key", nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := Folder(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		} else if _, err := os.Stat(filepath.Join(got, "key")); err != nil {
			t.Error(err)
		}
	}
	if got := Folder("mem://x"); got != "" {
		t.Errorf("the folder of a bucket that has none: %s", got)
	}
}

// An empty folder in the place of a key gives way to it. A folder with keys stays.
func TestAnEmptyFolderGivesWayToAKey(t *testing.T) {
	root := t.TempDir()
	b, err := openFolder(root)
	if err == nil {
		err = os.MkdirAll(filepath.Join(root, "a/empty"), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	write(t, b, "a/full/key", "a/empty")
	if err := WriteAll(t.Context(), b, "a/full", []byte("x")); err == nil {
		t.Error("a folder with keys was replaced")
	}
	if got := listed(t, b, ""); !slices.Equal(got, []string{"a/empty", "a/full/key"}) {
		t.Errorf("keys: %q", got)
	}
}
