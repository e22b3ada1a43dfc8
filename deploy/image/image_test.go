package image

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/disdel/disdel"
)

// plain is what an image of the runtime is made of, and that image: both are made once for all tests of this package.
var (
	plain      Options
	plainImage v1.Image
)

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "disdel-image-")
	if err != nil {
		log.Fatal(err)
	}
	plain = Options{
		Program: filepath.Join(folder, "disdel-runtime"), Certificates: filepath.Join(folder, "ca.pem"),
		Version: "v1", Revision: "abc",
	}
	pem := "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	if err := os.WriteFile(plain.Certificates, []byte(pem), 0o600); err != nil {
		log.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", plain.Program, "../../cmd/disdel-runtime")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		log.Fatalf("%v: %s", err, out)
	}
	if plainImage, err = Build(plain); err != nil {
		log.Fatal(err)
	}
	code := m.Run()
	os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	os.Exit(code)
}

func build(t *testing.T, o Options) v1.Image {
	t.Helper()
	image, err := Build(o)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func digest(t *testing.T, image v1.Image) string {
	t.Helper()
	d, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

func copyTo(t *testing.T, folder, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(folder, "other name")
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestTheSameFilesMakeTheSameBits(t *testing.T) {
	o := plain
	first := digest(t, plainImage)
	moved := o
	moved.Program, moved.Certificates = copyTo(t, t.TempDir(), o.Program), copyTo(t, t.TempDir(), o.Certificates)
	if got := digest(t, build(t, moved)); got != first {
		t.Errorf("%s, then %s", first, got)
	}
	o.Version = "v2"
	if digest(t, build(t, o)) == first {
		t.Error("another version is the same image")
	}
}

func TestAnImageSaysWhatItIs(t *testing.T) {
	image := plainImage
	c, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c.OS != "linux" || c.Config.User != "65532:65532" ||
		!slices.Equal(c.Config.Entrypoint, []string{"/disdel-runtime"}) ||
		c.Config.Labels["org.opencontainers.image.version"] != "v1" ||
		c.Config.Labels["org.opencontainers.image.revision"] != "abc" {
		t.Errorf("%+v", c.Config)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatal(layers, err)
	}
	size, err := layers[0].Size()
	if err != nil || size > 20e6 {
		t.Errorf("%d bytes, %v", size, err)
	}
}

// imageIn is the only image of a layout.
func imageIn(t *testing.T, folder string) v1.Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatal(manifest, err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// unpack is what a container engine does with a layout.
func unpack(t *testing.T, folder, root string) {
	t.Helper()
	all := mutate.Extract(imageIn(t, folder))
	defer all.Close()
	for files := tar.NewReader(all); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = errors.Join(os.MkdirAll(to, 0o755), os.Chmod(to, h.FileInfo().Mode()))
		} else {
			data, readErr := io.ReadAll(files)
			err = errors.Join(readErr, os.WriteFile(to, data, h.FileInfo().Mode()))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The unpacked layout, in a root with nothing else and as the image's user, answers /init and /run.
func TestAnUnpackedImageServesActions(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root changes the root folder")
	}
	folder, root := filepath.Join(t.TempDir(), "layout"), t.TempDir()
	image := plainImage
	for range 2 { // the second time it is there already
		if err := WriteLayout(folder, image); err != nil {
			t.Fatal(err)
		}
	}
	unpack(t, folder, root)
	cmd := &exec.Cmd{
		Path: programPath, Args: []string{programPath, "--listen", "unix:/tmp/socket"}, Dir: "/", Env: []string{"PATH=/"},
		SysProcAttr: &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}},
		Stderr:      os.Stderr,
	}
	if err := errors.Join(os.Chmod(filepath.Dir(root), 0o755), os.Chmod(root, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		<-ended
	}()
	again := time.NewTicker(5 * time.Millisecond) // another process, which has not opened its socket yet
	defer again.Stop()
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(root, "tmp", "socket"))
		},
		DisableKeepAlives: true,
	}}
	post := func(path, body string) (int, map[string]any) {
		for {
			answer, err := client.Post("http://runtime"+path, "application/json", strings.NewReader(body))
			if err != nil {
				select {
				case <-again.C:
					continue
				case why := <-ended:
					ended <- why
					t.Fatalf("it ended: %v; %v", why, err)
				}
			}
			defer answer.Body.Close()
			var got map[string]any
			json.NewDecoder(answer.Body).Decode(&got) //nolint:errcheck // compared below
			return answer.StatusCode, got
		}
	}
	if status, got := post("/init", `{"value":{"name":"train","main":"train","code":"disdel"}}`); status != http.StatusOK {
		t.Fatal(status, got)
	}
	status, got := post("/run", `{"value":{}}`) // a job is missing, which the action says
	if status/100 == 4 || got["error"] == nil {
		t.Errorf("%d %v", status, got)
	}
}

func TestRegistriesTakeAnImage(t *testing.T) {
	quiet := registry.Logger(log.New(io.Discard, "", 0))
	server := httptest.NewServer(registry.New(quiet))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	image := plainImage
	if err := Push(t.Context(), host+"/team/disdel:v1", image); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(host + "/team/disdel:v1")
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Image(tag)
	if err != nil || digest(t, got) != digest(t, image) {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := WriteTar(file, host+"/team/disdel:v1", image); err != nil {
		t.Fatal(err)
	}
	back, err := tarball.ImageFromPath(file, &tag)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := image.ConfigName()
	if name, err := back.ConfigName(); name != want || err != nil {
		t.Errorf("%v, not %v: %v", name, want, err)
	}
}

func TestRegistriesThatTakeNone(t *testing.T) {
	image := plainImage
	closed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	defer closed.Close()
	reference := strings.TrimPrefix(closed.URL, "http://") + "/a:v1"
	if err := Push(t.Context(), reference, image); disdel.KindOf(err) != disdel.Denied {
		t.Error(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := Push(ctx, reference, image); disdel.KindOf(err) != disdel.Canceled {
		t.Error(err)
	}
	for _, reference := range []string{"a", "host:1/a", "host/a:latest", "Host/A B:v1", "a:", ""} {
		if err := Push(t.Context(), reference, image); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%q: %v", reference, err)
		}
		if err := WriteTar(filepath.Join(t.TempDir(), "x"), reference, image); disdel.KindOf(err) != disdel.Invalid {
			t.Errorf("%q: %v", reference, err)
		}
	}
}

func TestProgramsThatAreNone(t *testing.T) {
	o := plain
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := map[string]disdel.Kind{}
	for program, change := range map[string]func(*Options){
		"dynamic":         func(o *Options) { o.Program = "/bin/sh" },
		"text":            func(o *Options) { o.Program = text },
		"missing":         func(o *Options) { o.Program = text + "none" },
		"no certificate":  func(o *Options) { o.Certificates = text },
		"no certificates": func(o *Options) { o.Certificates = text + "none" },
	} {
		bad := o
		change(&bad)
		_, err := Build(bad)
		got[program] = disdel.KindOf(err)
	}
	want := map[string]disdel.Kind{
		"dynamic": disdel.Invalid, "text": disdel.Invalid, "missing": disdel.NotFound, "no certificate": disdel.Invalid,
		"no certificates": disdel.NotFound,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteLayout(folder, plainImage); disdel.KindOf(err) != disdel.Conflict {
		t.Error(err)
	}
}
