package platform_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel/platform"
)

// A platform that has what OpenWhisks as people run them do worse, for tests of a client.
func ExampleParseEmulation() {
	l, err := platform.ParseEmulation("kubernetes,late-records=3s")
	fmt.Println(l.NoEvidence, l.LateRecords, err)
	_, err = platform.ParseEmulation("lambda")
	fmt.Println(err)
	// Output:
	// true 3s <nil>
	// configure platform: there is no emulation "lambda"
}

// Every request in a log, without its query.
func ExampleLogRequests() {
	var out strings.Builder
	logger := logrus.New()
	logger.SetOutput(&out)
	h := platform.LogRequests(http.NotFoundHandler(), logger)
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/api/v1?key=secret", nil))
	fmt.Println(strings.Contains(out.String(), "path=/api/v1 "), strings.Contains(out.String(), "secret"))
	// Output: true false
}

// How many threads want this machine's processors: 0 where nobody says within the time.
func ExampleMachineLoad() {
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	fmt.Println(platform.MachineLoad(ctx) >= 0)
	// Output: true
}

// Who starts a platform without a key of its own makes one, in the form that OpenWhisk's clients take: user:password.
func ExampleRandomKey() {
	key, another := platform.RandomKey(), platform.RandomKey()
	user, password, ok := strings.Cut(key, ":")
	fmt.Println(len(user), len(password), ok)
	fmt.Println("another every time:", key != another)
	// Output:
	// 36 64 true
	// another every time: true
}

// Native actions, which OpenWhisk runs in an image of its own, are run by a kind that no action names.
func ExampleDefaultImages() {
	kinds := map[string]platform.Kind{"native:1": {Command: []string{"program", "{listen}"}, Unlisted: true}}
	fmt.Println(platform.DefaultImages(kinds)["openwhisk/dockerskeleton"])
	// Output: native:1
}
