package platform

import (
	"net/http"
	"time"

	"github.com/sirupsen/logrus"
)

// LogRequests is h with a line in log, at level info, for every request: method, path, status, duration and the
// transaction id, by which OpenWhisk's clients name a request that failed. Queries stay out: they may hold what is not
// for a log.
func LogRequests(h http.Handler, log logrus.FieldLogger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin, seen := time.Now(), &statusWriter{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(seen, r)
		log.WithFields(logrus.Fields{
			"method": r.Method, "path": r.URL.Path, "status": seen.status,
			"duration": time.Since(begin).Round(time.Microsecond), "transaction": w.Header().Get("X-Request-ID"),
		}).Info("request")
	})
}

// statusWriter remembers the status that was answered.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (s *statusWriter) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the writer below.
func (s *statusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }
