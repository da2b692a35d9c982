package exclusion_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

func TestAFreeLockIsTwoRequests(t *testing.T) {
	fixture.EachLock(t, func(t *testing.T, w *fixture.Fixture, l fixture.Lock) {
		x := l.Open(t, w, w.Client, 30*time.Second)
		for range 3 {
			w.Count.Reset()
			g := rig.Must(x.Try(t.Context()))(t)
			if err := g.Release(t.Context()); err != nil {
				t.Error(err)
			}
			rig.Equal(t, w.Count.Total(), 2, "requests: %v", w.Count.Counts())
		}
	})
}

func TestAHeldLockIsRefused(t *testing.T) {
	fixture.EachLock(t, func(t *testing.T, w *fixture.Fixture, l fixture.Lock) {
		g := rig.Must(l.Open(t, w, w.Client, 30*time.Second).Lock(t.Context()))(t)
		other := l.Open(t, w, w.Client, 30*time.Second)
		w.Count.Reset()
		_, err := other.Try(t.Context())
		rig.Is(t, err, repo.ErrLocked)
		rig.Equal(t, w.Count.Total(), 1, "requests for a refusal: %v", w.Count.Counts())
		_, err = other.Lock(rig.Shortly(t))
		rig.Is(t, err, repo.ErrLocked)
		rig.Is(t, err, context.DeadlineExceeded)

		done, end := context.WithCancel(t.Context())
		end()
		for range 2 { // a release works although its context is done, and twice is harmless
			if err := g.Release(done); err != nil {
				t.Error(err)
			}
		}
		if g.Context.Err() == nil {
			t.Error("the context of the hold goes on after its release")
		}
		next := rig.Must(other.Try(t.Context()))(t) // whoever gave up waiting left nothing behind
		if next.Token <= g.Token {
			t.Errorf("token %d after %d", next.Token, g.Token)
		}
	})
}

func TestTokensSurviveTheRow(t *testing.T) {
	fixture.EachLock(t, func(t *testing.T, w *fixture.Fixture, l fixture.Lock) {
		if l.Row == nil {
			return
		}
		x := l.Open(t, w, w.Client, 30*time.Second)
		g := rig.Must(x.Try(t.Context()))(t)
		_, err := w.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &w.Table, Key: l.Row})
		if err != nil {
			t.Fatal(err)
		}
		next := rig.Must(x.Try(t.Context()))(t)
		if next.Token <= g.Token {
			t.Errorf("token %d after %d", next.Token, g.Token)
		}
		rig.Is(t, g.Release(t.Context()), repo.ErrLockLost)
		if err := next.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
