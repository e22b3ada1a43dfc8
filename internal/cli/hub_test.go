package cli

import (
	"crypto/sha1"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
)

// serveHub is the command of the scripts that serves a folder as the repository ab/model of a hub, and sets HF_ENDPOINT
// to its address. The hub answers only requests with the token that it sets as HF_TOKEN. The first answer is cut.
func serveHub(ts *testscript.TestScript, _ bool, args []string) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	folder, cuts := ts.MkAbs(args[0]), atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if strings.Contains(r.URL.Path, "/ab/model/revision/main") {
			list, err := os.ReadDir(folder)
			ts.Check(err)
			var lines []string
			for _, f := range list {
				data, err := os.ReadFile(filepath.Join(folder, f.Name()))
				ts.Check(err)
				lines = append(lines, fmt.Sprintf(`{"rfilename":%q,"size":%d,"blobId":"%x"}`, f.Name(), len(data),
					sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(data)), data...))))
			}
			fmt.Fprintf(w, `{"sha":%q,"siblings":[%s]}`, commit, strings.Join(lines, ","))
			return
		}
		_, name, ok := strings.Cut(r.URL.Path, "/ab/model/resolve/"+commit+"/")
		if !ok {
			http.NotFound(w, r)
			return
		}
		if cuts.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		http.ServeFile(w, r, filepath.Join(folder, name))
	}))
	ts.Defer(server.Close)
	ts.Setenv("HF_ENDPOINT", server.URL)
	ts.Setenv("HF_TOKEN", "secret")
}
