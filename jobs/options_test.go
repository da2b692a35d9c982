package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// Options that make no sense are refused before anything is sent.
func TestOptionsAreChecked(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	for _, o := range []jobs.Option{nil, jobs.Priority(0), jobs.Priority(5), jobs.Attempts(0), jobs.Timeout(0), jobs.Unique("")} {
		_, err := s.Enqueue(t.Context(), "mail", deploy{}, o)
		rig.Is(t, err, repo.ErrConfig)
	}
	for _, o := range []jobs.Option{jobs.WithID("one"), jobs.Unique("one")} {
		_, err := s.EnqueueMany(t.Context(), "mail", []deploy{{}, {}}, o)
		rig.Is(t, err, repo.ErrConfig)
	}
	if n := b.Count.Total(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// Jobs of a lower number come first, those of one number in their order, also when they
// come back, and their ids find them.
func TestPriority(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{Retry: jobs.Retry{Min: time.Hour, Max: time.Hour}})
	ids := map[int]string{}
	for i, level := range []int{4, 2, 3, 1, 2, 1} {
		options := []jobs.Option{jobs.Priority(level)}
		if i >= 4 {
			options = append(options, jobs.After(time.Hour))
		}
		ids[i] = put(t, s, "mail", deploy{N: i}, options...)
		if again := put(t, s, "mail", deploy{N: i}, append(options[1:], jobs.WithID(ids[i]))...); again != ids[i] {
			t.Errorf("enqueued again as %s", again)
		}
	}
	wantLater(t, s, "mail", 6, 2)
	s.SetClock(time.Hour)
	rig.Is(t, s.Reschedule(t.Context(), "mail", ids[4], time.Now())) // at the end of its level
	var places []string
	levels := map[string]int{ids[0]: 4, ids[1]: 2, ids[2]: 3, ids[3]: 1, ids[4]: 2, ids[5]: 1}
	for j, err := range s.Jobs(t.Context(), "mail") {
		rig.Is(t, err)
		if places = append(places, j.ID); j.Priority != levels[j.ID] {
			t.Errorf("%s has the priority %d, want %d", j.ID, j.Priority, levels[j.ID])
		}
	}
	want := []string{ids[3], ids[1], ids[4], ids[2], ids[0], ids[5]} // the last one waits
	if !slices.Equal(places, want) {
		t.Errorf("%q, want %q", places, want)
	}
	for _, i := range []int{0, 3, 5} {
		b.Count.Reset()
		rig.Is(t, s.Cancel(t.Context(), "mail", ids[i]))
		if n := b.Count.Total(); n > 3 {
			t.Errorf("%d requests to cancel %s", n, ids[i])
		}
	}
	for range 3 {
		rig.Is(t, rig.Must(s.Next(t.Context(), "mail"))(t).Done(t.Context()))
	}
	wantLater(t, s, "mail", 0, 0)
}

// However many jobs of the first level come, one start in eight is of another, and each
// level has its turn.
func TestNoPriorityStarves(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	for level := 1; level <= 4; level++ {
		for range 12 {
			put(t, s, "mail", deploy{N: level}, jobs.Priority(level))
			if level == 1 {
				for range 3 {
					put(t, s, "mail", deploy{N: 1}, jobs.Priority(1))
				}
			}
		}
	}
	levels := map[int]int{}
	for range 48 {
		j := rig.Must(s.Next(t.Context(), "mail"))(t)
		levels[j.Value().N]++
		rig.Is(t, j.Done(t.Context()))
	}
	if levels[1] != 42 || levels[2] != 2 || levels[3] != 2 || levels[4] != 2 {
		t.Errorf("48 starts by level: %v", levels)
	}
	audit(t, s)
}

// A job's own attempts and time go before those of the program.
func TestAttemptsAndTimeoutOfAJob(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{Retry: jobs.Retry{Attempts: 3}})
	put(t, s, "mail", deploy{}, jobs.Attempts(1))
	rig.Is(t, rig.Must(s.Next(t.Context(), "mail"))(t).Fail(t.Context(), nil))
	wantResource(t, s, "mail", 0, 0, 1)
	put(t, s, "mail", deploy{}, jobs.Attempts(7))
	for attempt := range 7 {
		s.SetClock(time.Duration(attempt) * time.Hour)
		j := rig.Must(s.Next(t.Context(), "mail"))(t)
		rig.Is(t, j.Fail(t.Context(), nil))
	}
	wantResource(t, s, "mail", 0, 0, 2)
	put(t, s, "slow", deploy{}, jobs.Timeout(20*time.Millisecond), jobs.Attempts(1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rig.Is(t, s.Run(ctx, func(held context.Context, _ *jobs.Job[deploy]) error {
		<-held.Done()
		cancel()
		return context.Cause(held)
	}))
	for d, err := range s.Dead(t.Context(), "slow") {
		if rig.Is(t, err); !strings.Contains(d.Error, "time is over") {
			t.Errorf("%+v", d)
		}
	}
}

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
	enqueue()
	audit(t, s)
}

// loseBehindTheFirst loses the answers of all transactions but the next one.
func loseBehindTheFirst(b bench) {
	sent := 0
	b.Faults(func(op string, _ int, _ []byte) fault.Kind {
		if op == "TransactWriteItems" {
			if sent++; sent > 1 {
				return fault.LoseResponse
			}
		}
		return fault.None
	})
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

// Many jobs come in few transactions, in their order, and what was not enqueued is said.
func TestEnqueueMany(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	var all []deploy
	for i := range 200 {
		all = append(all, deploy{N: i})
	}
	ids := rig.Must(s.EnqueueMany(t.Context(), "mail", all))(t)
	if n := b.Count.Total(); n != 3+1 || len(ids) != 200 {
		t.Errorf("%d requests, %d ids", n, len(ids))
	}
	inOrder := func() {
		t.Helper()
		var listed []string
		for j, err := range s.Jobs(t.Context(), "mail") {
			rig.Is(t, err)
			listed = append(listed, j.ID)
		}
		if !slices.Equal(listed, ids) {
			t.Error("the order is another")
		}
	}
	inOrder()
	wantLater(t, s, "mail", 200, 0)
	ids = append(ids, rig.Must(s.EnqueueMany(t.Context(), "mail", all[:100], jobs.At(time.Now().Add(time.Hour)), jobs.Priority(3)))(t)...)
	inOrder()
	wantLater(t, s, "mail", 300, 100)
	if none := rig.Must(s.EnqueueMany(t.Context(), "mail", nil))(t); none != nil {
		t.Errorf("%q", none)
	}

	loseBehindTheFirst(b)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	ids, err := s.EnqueueMany(ctx, "letters", all)
	var many *jobs.ManyError
	if rig.Is(t, err, repo.ErrOutcomeUnknown); !errors.As(err, &many) || len(many.Unknown) != 90 || many.Unknown[0] != 90 || len(many.Missing) != 20 || many.Missing[0] != 180 {
		t.Fatalf("%+v", many)
	}
	if ids[0] == "" || ids[179] == "" || ids[180] != "" {
		t.Errorf("%q", ids)
	}
	_, err = s.EnqueueMany(ctx, "letters", all, jobs.WithIDs(ids)) // comes no further than before
	if !errors.As(err, &many) || len(many.Unknown) != 180 || len(many.Missing) != 20 {
		t.Errorf("%+v", many)
	}
}

// Jobs whose EnqueueMany is unknown are repeated together: nobody knows of a part of them.
func TestManyJobsAreRepeatedTogether(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	all := []deploy{{N: 0}, {N: 1}, {N: 2}}
	lose := func(resource string, kind fault.Kind) []string {
		defer b.Faults(nil)
		b.Faults(func(string, int, []byte) fault.Kind { return kind })
		ids, err := s.EnqueueMany(t.Context(), resource, all)
		rig.Is(t, err, repo.ErrOutcomeUnknown)
		return ids
	}
	again := func(resource string, want error, all []deploy, ids ...string) {
		t.Helper()
		_, err := s.EnqueueMany(t.Context(), resource, all, jobs.WithIDs(ids))
		rig.Is(t, err, want)
	}
	ids := lose("mail", fault.LoseResponse)
	for range all {
		rig.Is(t, rig.Must(s.Next(t.Context(), "mail"))(t).Done(t.Context()))
	}
	_, err := s.Enqueue(t.Context(), "mail", all[0], jobs.WithID(ids[0]))
	rig.Is(t, err, repo.ErrOutcomeUnknown)
	again("mail", repo.ErrOutcomeUnknown, all[1:], ids[1:]...)
	again("mail", nil, append(all, deploy{N: 3}), append(ids, "")...)
	again("mail", repo.ErrConfig, all, "", "", "own")
	again("mail", repo.ErrConfig, all, ids[0], ids[1], ids[0])
	wantResource(t, s, "mail", 1, 0, 0)

	ids = lose("letters", fault.DropRequest)
	put(t, s, "letters", all[0], jobs.WithID(ids[0]))
	again("letters", repo.ErrOutcomeUnknown, all, ids...)
	wantResource(t, s, "letters", 1, 0, 0)
}
