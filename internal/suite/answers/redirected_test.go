package answers_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// An HTTP client follows redirections, and what it brings back from there looks like an
// answer of the service.
func TestRedirectionsThatAreFollowed(t *testing.T) {
	eachRedirection(t, redirected)
}

func eachRedirection(t *testing.T, test func(t *testing.T, p *place, status int, follows *http.Client)) {
	p := newPlace(t)
	p.peer = rig.Client()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			for _, follows := range []*http.Client{nil, {}} {
				test(t, p, status, follows)
			}
		})
	}
}

// follower goes to a portal, by an HTTP client of its own or, where that is nil, by the SDK's.
func follower(t *testing.T, p *place, portal *httptest.Server, follows *http.Client) *optimistic.Repository[account] {
	c := rig.Client(func(o *dynamodb.Options) {
		if o.BaseEndpoint, o.Retryer = &portal.URL, retry.AddWithMaxAttempts(o.Retryer, 1); follows != nil {
			o.HTTPClient = follows
		}
	})
	return versions(optimistic.Config{Attempts: 1})(t, p.items(t, c))
}

func redirected(t *testing.T, p *place, status int, follows *http.Client) {
	t.Helper()
	portal := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/login" {
			http.Redirect(w, r, "/login", status)
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.WriteString(w, `{}`)
	}))
	defer portal.Close()
	id := rand.Text()
	there(t, versions(optimistic.Config{})(t, p.items(t, p.peer)), id)
	r := follower(t, p, portal, follows)
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	if _, err := r.Get(ctx, keyOf(id)); err == nil || errors.Is(err, repo.ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
	a := first(id)
	a.Version = 2
	if _, err := r.Save(ctx, a); repo.VerdictOf(err) != repo.Unknown {
		t.Errorf("Save: %v", err)
	}
}

// A request that was carried out may be answered with a redirection to where nobody is: that
// the HTTP client finds nobody there says nothing of the request.
func TestRedirectionsToNobody(t *testing.T) {
	eachRedirection(t, ledToNobody)
}

func ledToNobody(t *testing.T, p *place, status int, follows *http.Client) {
	t.Helper()
	gone := httptest.NewServer(nil)
	gone.Close()
	portal := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		behind := rig.Must(http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, rig.Endpoint()+r.URL.Path, r.Body))(t)
		behind.Header = r.Header.Clone()
		resp, err := http.DefaultClient.Do(behind)
		rig.Is(t, err)
		defer func() { _ = resp.Body.Close() }()
		http.Redirect(w, r, gone.URL, status)
	}))
	defer portal.Close()
	id := rand.Text()
	a := there(t, versions(optimistic.Config{})(t, p.items(t, p.peer)), id)
	r := follower(t, p, portal, follows)
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	a.Balance++
	if _, err := r.Save(ctx, a); repo.VerdictOf(err) != repo.Unknown {
		t.Errorf("Save: %v", err)
	}
	add := expression.Add(expression.Name("balance"), expression.Value(1))
	if _, err := r.Apply(ctx, keyOf(id), add); repo.VerdictOf(err) != repo.Unknown {
		t.Errorf("Apply: %v", err)
	}
	rig.Equal(t, balance(t, p, id)(t.Context()), 2, "carried out times, of two")
}
