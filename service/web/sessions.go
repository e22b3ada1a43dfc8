package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/disdel/disdel"
)

const (
	cookieName   = "disdel_session"
	sessionFor   = 12 * time.Hour
	mostSessions = 10_000 // of all people together; the oldest go first
)

// sessions are the sessions of all users. They are only in memory, and end with the server.
type sessions struct {
	mu    sync.Mutex
	enter [sha256.Size]byte             // guarded by mu: of the key that signs in once
	open  bool                          // guarded by mu: it has not been used
	known map[[sha256.Size]byte]session // guarded by mu: by the hash of the cookie's value
}

type session struct {
	token string
	until time.Time
}

func newSessions(enter string) *sessions {
	return &sessions{enter: sha256.Sum256([]byte(enter)), open: enter != "", known: map[[sha256.Size]byte]session{}}
}

// begin signs a user in.
func (s *sessions) begin(w http.ResponseWriter, r *http.Request, token string) {
	secret := make([]byte, 32)
	rand.Read(secret)
	value := hex.EncodeToString(secret)
	now := time.Now()
	s.mu.Lock()
	s.tidy(now)
	s.known[sha256.Sum256([]byte(value))] = session{token, now.Add(sessionFor)}
	s.mu.Unlock()
	http.SetCookie(w, s.cookie(r, value, int(sessionFor/time.Second)))
}

// cookie returns a session's cookie. No script can read it, and it is not sent to other sites.
func (s *sessions) cookie(r *http.Request, value string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Value: value, Path: strings.TrimSuffix(Root, "/"), MaxAge: seconds, HttpOnly: true,
		Secure:   r.TLS != nil,
		SameSite: http.SameSiteStrictMode,
	}
}

// tidy drops expired sessions, and the oldest if there are too many; the caller holds the lock.
func (s *sessions) tidy(now time.Time) {
	var oldest [sha256.Size]byte
	first := now.Add(2 * sessionFor)
	for key, one := range s.known {
		if now.After(one.until) {
			delete(s.known, key)
		} else if one.until.Before(first) {
			oldest, first = key, one.until
		}
	}
	if len(s.known) >= mostSessions {
		delete(s.known, oldest)
	}
}

// token returns the token that the user has signed in with.
func (s *sessions) token(r *http.Request) (string, bool) {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.known[sha256.Sum256([]byte(c.Value))]
	return one.token, ok && time.Now().Before(one.until)
}

// end signs a user out.
func (s *sessions) end(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(cookieName); err == nil {
		s.mu.Lock()
		delete(s.known, sha256.Sum256([]byte(c.Value)))
		s.mu.Unlock()
	}
	http.SetCookie(w, s.cookie(r, "", -1))
}

// once reports whether a key is the one that signs in, and has not been used.
func (s *sessions) once(key string) bool {
	hash := sha256.Sum256([]byte(key))
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open || subtle.ConstantTimeCompare(hash[:], s.enter[:]) != 1 {
		return false
	}
	s.open = false
	return true
}

func (s *site) loginPage(w http.ResponseWriter, r *http.Request) {
	(&visit{Request: r, w: w, site: s}).write(http.StatusOK, "login", view{Title: "Sign in"})
}

func (s *site) login(w http.ResponseWriter, r *http.Request) {
	v := &visit{Request: r, w: w, site: s}
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	token := strings.TrimSpace(r.PostFormValue("token"))
	if _, _, err := s.Sign(r.Context(), token); err != nil {
		status := http.StatusUnauthorized
		if disdel.KindOf(err) != disdel.Denied {
			status = http.StatusServiceUnavailable
		}
		v.write(status, "login", view{Title: "Sign in", Body: disdel.AsError(err)})
		return
	}
	s.sessions.begin(w, r, token)
	http.Redirect(w, r, Root, http.StatusSeeOther)
}

// enter signs in a user with the key that the program printed.
func (s *site) enter(w http.ResponseWriter, r *http.Request) {
	if s.sessions.once(r.URL.Query().Get("key")) {
		if _, _, err := s.Sign(context.WithoutCancel(r.Context()), s.Token); err == nil {
			s.sessions.begin(w, r, s.Token)
		}
	}
	http.Redirect(w, r, Root, http.StatusSeeOther)
}

func (s *site) logout(w http.ResponseWriter, r *http.Request) {
	if token, ok := s.sessions.token(r); ok {
		s.Sign(r.Context(), token) //nolint:errcheck // only Config's owner wants to know who signs out
	}
	s.sessions.end(w, r)
	http.Redirect(w, r, Root+"login", http.StatusSeeOther)
}
