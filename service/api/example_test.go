package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/api"
	"github.com/disdel/disdel/service/tenant"
)

// A program that serves its jobs over HTTP: a tenant comes in with a token, and finds its own jobs alone.
func ExampleHandler() {
	home, err := os.MkdirTemp("", "disdel-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(home)
	ctx := context.Background()
	s, err := service.Open(ctx, service.Config{Home: home})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	token, err := s.Tenants().Create(ctx, "ann", tenant.RoleSubmit, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := api.Handler(api.Config{Service: s})
	for _, header := range []string{"", "Bearer " + token} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/api/v1/jobs", nil)
		r.Header.Set("Authorization", header)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 401
	// 200
}
