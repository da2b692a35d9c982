package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// One job waits or runs under a key; the other is refused, and told which.
func TestUnique(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{Retry: jobs.Retry{Attempts: 2}})
	refused := func(first string) {
		t.Helper()
		id, err := s.Enqueue(t.Context(), "mail", deploy{}, jobs.Unique("17"))
		var other *jobs.ExistsError
		if rig.Is(t, err, jobs.ErrExists); !errors.As(err, &other) || other.ID != first || id != first || other.Key != "17" {
			t.Errorf("%q, %+v, want %q", id, other, first)
		}
	}
	enqueue := func(options ...jobs.Option) string {
		t.Helper()
		return put(t, s, "mail", deploy{}, append(options, jobs.Unique("17"))...)
	}
	next := func() *jobs.Job[deploy] { return rig.Must(s.Next(t.Context(), "mail"))(t) }

	id := enqueue()
	enqueue(jobs.WithID(id)) // itself
	refused(id)
	put(t, s, "mail", deploy{}, jobs.Unique("18"), jobs.After(time.Hour))
	put(t, s, "letters", deploy{}, jobs.Unique("17"))
	j := next()
	refused(id)
	rig.Is(t, j.Fail(t.Context(), nil))
	refused(id) // it waits for its next attempt
	rig.Is(t, s.Reschedule(t.Context(), "mail", id, time.Now()))
	refused(id)
	rig.Is(t, next().Fail(t.Context(), nil)) // and is a dead letter
	own := enqueue(jobs.WithID("own"), jobs.After(time.Hour))
	refused(own)
	rig.Is(t, s.Requeue(t.Context(), "mail", id)) // not unique any more
	rig.Is(t, next().Done(t.Context()))
	refused(own)
	rig.Is(t, s.Cancel(t.Context(), "mail", own))
	id = enqueue()
	j = next()
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { // the next one takes its place
		if err := j.DoneIn(tx); err != nil {
			return err
		}
		var err error
		id, err = s.In(tx).Enqueue(ctx, "mail", deploy{}, jobs.Unique("17"))
		return err
	}))
	refused(id)
	err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		_, err := s.In(tx).Enqueue(ctx, "mail", deploy{}, jobs.Unique("17"))
		return err
	})
	rig.Is(t, err, jobs.ErrExists)
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { return s.In(tx).Cancel(ctx, "mail", id) }))
	rig.Is(t, s.Cancel(t.Context(), "mail", id), repo.ErrNotFound)
	if row := b.Item(t, attrs{"pk": str("UNIQUE#mail"), "sk": str("17")}); row != nil {
		t.Errorf("the key of a job that is gone is kept: %v", row)
	}
	enqueue()
	audit(t, s)
}

// A key that an older program has left behind, with a job that is gone, is taken over.
func TestAKeyThatWasLeftIsTakenOver(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	leave := func(resource, key string) {
		rig.Must(b.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: attrs{"pk": str("UNIQUE#" + resource), "sk": str(key), "id": str("gone")}}))(t)
	}
	put(t, s, "mail", deploy{N: 1}, jobs.Unique("17"))
	leave("mail", "18")
	id := put(t, s, "mail", deploy{N: 2}, jobs.Unique("18"))
	got, err := s.Enqueue(t.Context(), "mail", deploy{N: 3}, jobs.Unique("18"))
	if rig.Is(t, err, jobs.ErrExists); got != id {
		t.Errorf("%s, want %s", got, id)
	}
	wantResource(t, s, "mail", 2, 0, 0)

	for n, enqueue := range []func(o ...jobs.Option) error{
		func(o ...jobs.Option) error { _, err := s.Enqueue(t.Context(), "again", deploy{}, o...); return err },
		func(o ...jobs.Option) error {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
				_, err := s.In(tx).Enqueue(ctx, "again", deploy{}, o...)
				return err
			})
		},
	} { // by an earlier job of the same id, which is remembered no more
		b.put(t, attrs{"pk": str("UNIQUE#again"), "sk": str("17"), "id": str("own")})
		for range 2 {
			rig.Is(t, enqueue(jobs.WithID("own"), jobs.Unique("17")))
			wantResource(t, s, "again", 1, 0, 0)
		}
		rig.Is(t, s.Cancel(t.Context(), "again", "own"))
		if rows := b.Item(t, attrs{"pk": str("UNIQUE#again"), "sk": str("17")}); len(rows) > 0 {
			t.Errorf("%d: the key is not free", n)
		}
		rig.Must(b.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &b.Table, Key: attrs{"pk": str("IDS#again"), "sk": str("own")}}))(t)
	}

	leave("letters", "19") // the answers of the second request are lost, and it is repeated when the job is done
	loseBehindTheFirst(b)
	id, err = s.Enqueue(t.Context(), "letters", deploy{}, jobs.Unique("19"))
	rig.Is(t, err, repo.ErrOutcomeUnknown)
	b.Faults(nil)
	rig.Is(t, rig.Must(s.Next(t.Context(), "letters"))(t).Done(t.Context()))
	put(t, s, "letters", deploy{}, jobs.Unique("19"), jobs.WithID(id))
	wantResource(t, s, "letters", 0, 0, 0)
}

// Of many that enqueue a job under one key over a bad network one is told that it has, and
// one job is there.
func TestUniqueRace(t *testing.T) {
	b := newBench(t)
	for round := range rig.Share(5, 40) {
		key, first := fmt.Sprint(round), make([]string, 6)
		var all sync.WaitGroup
		for i := range first {
			peer := bench{b.Peer()}
			peer.Nth("TransactWriteItems", i%2, fault.LoseResponse)
			s := peer.open(t, jobs.Config{})
			all.Go(func() {
				id, err := s.Enqueue(t.Context(), "mail", deploy{N: i}, jobs.Unique(key))
				if first[i] = id; err != nil {
					rig.Is(t, err, jobs.ErrExists)
				}
			})
		}
		all.Wait()
		if len(slices.Compact(first)) != 1 {
			t.Errorf("told %q", first)
		}
		wantResource(t, b.open(t, jobs.Config{}), "mail", round+1, 0, 0)
	}
}
