package once_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/repo"
)

// of is the store for a request; "" is one without a fingerprint.
func (s *store) of(request string) *once.Store {
	if request == "" {
		return s.Store
	}
	return s.WithFingerprint([]byte(request))
}

// The same id with another request is told so, and does not run; with an answer that is
// lost, and where the result was not kept, too.
func TestAnotherRequest(t *testing.T) {
	s := newStore(t)
	for _, pair := range []struct {
		first, second string
		other         bool
	}{{"", "", false}, {"", "a", false}, {"a", "", false}, {"a", "a", false}, {"a", "b", true}} {
		for _, lose := range []bool{false, true} {
			for text, kept := range map[string]error{"paid": nil, "\xff": once.ErrNoResult} {
				id := pair.first + "-" + pair.second + map[bool]string{true: "lost"}[lose] + map[bool]string{true: "kept"}[kept == nil] + "."
				if lose {
					s.Nth("UpdateItem", 1, fault.LoseResponse)
				}
				s.Count.Reset()
				_, err := once.Do(t.Context(), s.of(pair.first), id, func(context.Context, once.Run) (string, error) { return text, nil })
				rig.Is(t, err, kept)
				if n := s.Count.Total(); !lose && n != 2 {
					t.Errorf("%+v: %d requests", pair, n)
				}
				s.Faults(nil)
				s.Count.Reset()
				_, err = once.Do(t.Context(), s.of(pair.second), id, func(context.Context, once.Run) (string, error) {
					t.Errorf("%+v: it runs again", pair)
					return "", nil
				})
				want := kept
				if pair.other {
					want = repo.ErrMismatch
				}
				if !errors.Is(err, want) || s.Count.Total() != 1 {
					t.Errorf("%+v, lost %v: %v, want %v, after %d requests", pair, lose, err, want, s.Count.Total())
				}
				if pair.other && (repo.VerdictOf(err) != repo.NotWritten || repo.Retryable(err)) {
					t.Errorf("%v: verdict %v, retryable %v", err, repo.VerdictOf(err), repo.Retryable(err))
				}
			}
		}
	}
}

// What is remembered is the request of the run that has completed the id: not one that
// failed, nor one that is forgotten, be it of a program that knows of no fingerprints.
func TestWhoseRequestIsRemembered(t *testing.T) {
	s := newStore(t)
	failed := errors.New("failed")
	_, err := once.Do(t.Context(), s.of("a"), "order", func(context.Context, once.Run) (int, error) { return 0, failed })
	rig.Is(t, err, failed)
	give := func(request string, n int) {
		t.Helper()
		if got := rig.Must(once.Do(t.Context(), s.of(request), "order", func(context.Context, once.Run) (int, error) { return n, nil }))(t); got != n {
			t.Errorf("%d, want %d", got, n)
		}
	}
	give("b", 1)
	give("", 1)
	s.set(t, "order", "SET lockTime = :n", time.Now().Add(-time.Hour).Unix())
	give("", 2)
	give("c", 2)
	s.set(t, "order", "SET lockTime = :n", time.Now().Add(-time.Hour).Unix())
	give("c", 3)
	_, err = once.Do(t.Context(), s.of("b"), "order", never(t))
	rig.Is(t, err, repo.ErrMismatch)
	// Who comes beside the run is told, too.
	began, gate, told := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := once.Do(t.Context(), s.of("a"), "another", func(context.Context, once.Run) (int, error) {
			close(began)
			<-gate
			return 1, nil
		})
		told <- err
	}()
	<-began
	go func() {
		_, err := once.Do(t.Context(), s.of("b"), "another", never(t))
		told <- err
	}()
	close(gate)
	first, second := <-told, <-told
	if first != nil {
		first, second = second, first
	}
	rig.Is(t, first)
	rig.Is(t, second, repo.ErrMismatch)
	for _, empty := range [][]byte{nil, {}} {
		_, err := once.Do(t.Context(), s.WithFingerprint(empty), "order", never(t))
		rig.Is(t, err, repo.ErrConfig)
	}
}

// While a request runs, and when its process has died, its id is not another request's: the
// effect of the first may have come about under it. A run that fails leaves the id free.
func TestTheRequestOfARun(t *testing.T) {
	s := newStore(t)
	past := func(id string, by time.Duration) { s.set(t, id, "SET lockTime = :n", time.Now().Add(-by).Unix()) }
	failed := errors.New("failed")
	for _, first := range []string{"", "a"} {
		for _, second := range []string{"", "a", "b"} {
			id := first + "-" + second + "."
			other := first != "" && second == "b"
			_, err := once.Do(t.Context(), s.of(first), id, func(context.Context, once.Run) (int, error) {
				for _, frozen := range []bool{false, true} {
					if frozen {
						if !other {
							break // it would take the id over
						}
						past(id, time.Minute)
					}
					s.Count.Reset()
					_, err := once.Do(rig.Shortly(t), s.of(second), id, never(t))
					want := repo.ErrLocked
					if other {
						want = repo.ErrMismatch
					}
					if rig.Is(t, err, want); other && (s.Count.Total() != 1 || repo.Retryable(err) || repo.VerdictOf(err) != repo.NotWritten) {
						t.Errorf("%s %d requests, retryable %v, %v", id, s.Count.Total(), repo.Retryable(err), repo.VerdictOf(err))
					}
				}
				return 0, failed
			})
			rig.Is(t, err, failed)
			one := func(context.Context, once.Run) (int, error) { return 1, nil }
			rig.Must(once.Do(t.Context(), s.of(second), id, one))(t)
			// The process of a run dies.
			for after, forgotten := range map[time.Duration]bool{time.Minute: false, 2 * time.Hour: true} {
				id += "dies"
				s.dead(t, id, first)
				past(id, after)
				_, err := once.Do(t.Context(), s.of(second), id, one)
				if other && !forgotten {
					rig.Is(t, err, repo.ErrMismatch)
					_, err = once.Do(t.Context(), s.of(first), id, one)
				}
				rig.Is(t, err)
			}
		}
	}
}

// dead leaves the row of a run whose process is gone.
func (s *store) dead(t *testing.T, id, request string) {
	t.Helper()
	var row map[string]types.AttributeValue
	_, err := once.Do(t.Context(), s.of(request), id, func(context.Context, once.Run) (int, error) {
		row = s.Item(t, rawKey(id))
		return 0, errors.New("it is gone")
	})
	if err == nil {
		t.Fatal("it has left a result")
	}
	rig.Must(s.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.Table, Item: row}))(t)
}

// Of requests that come at once with one id, one runs.
func TestRequestsSideBySide(t *testing.T) {
	s := newStore(t)
	for round := range 5 {
		var runs atomic.Int64
		var all sync.WaitGroup
		for i := range 12 {
			request := string(rune('a' + i%4))
			all.Go(func() {
				got, err := once.Do(t.Context(), s.of(request), fmt.Sprint("order", round), func(context.Context, once.Run) (string, error) {
					runs.Add(1)
					return request, nil
				})
				if err == nil && got != request || err != nil && !errors.Is(err, repo.ErrMismatch) {
					t.Errorf("%s gets %q, %v", request, got, err)
				}
			})
		}
		all.Wait()
		rig.Equal(t, runs.Load(), 1, "runs")
	}
}
