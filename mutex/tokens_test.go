package mutex_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
)

// late is a client whose first update arrives when its third is sent, and has
// no answer.
type late struct {
	*dynamodb.Client
	n      int
	first  *dynamodb.UpdateItemInput
	before func(n int) // each update but the first
}

func (l *late) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if l.n++; l.n == 1 {
		l.first = in
		return nil, errors.New("no answer")
	}
	l.before(l.n)
	if l.n == 3 {
		if _, err := rig.Client().UpdateItem(ctx, l.first); err != nil {
			return nil, err
		}
	}
	return l.Client.UpdateItem(ctx, in, o...)
}

// A fail-closed lock has no row between two holders that could keep its token.
// A waiter that has seen the first of them gets a larger one all the same.
func TestTokensOfFailClosedLocksGrowForThoseWhoWaited(t *testing.T) {
	t.Run("the clock of the first is ahead", func(t *testing.T) {
		b := newBench(t)
		ahead := rig.Must(mutex.New(rig.Client(), b.Table, mutex.Config{Race: true}))(t)
		ahead.SetClock(time.Hour)
		first := lock(t, ahead, "door")
		l := b.locker(t, mutex.Config{Race: true, Wait: quick})
		tries := 0
		b.Count.OnRequest(func(string, []byte) {
			if tries++; tries == 2 { // the first has shown the holder
				rig.Is(t, first.Unlock(t.Context()))
			}
		})
		if held := rig.Must(l.Lock(t.Context(), "door"))(t); held.Token() <= first.Token() {
			t.Errorf("token %d after %d", held.Token(), first.Token())
		}
	})
	t.Run("an old request arrives", func(t *testing.T) {
		b := newBench(t)
		rival := rig.Must(mutex.New(rig.Client(), b.Table, mutex.Config{Race: true}))(t)
		var first *mutex.Lock
		c := &late{Client: b.Client, before: func(n int) {
			switch n {
			case 2:
				first = lock(t, rival, "door")
			case 3:
				rig.Is(t, first.Unlock(t.Context()))
			}
		}}
		l := rig.Must(mutex.New(c, b.Table, mutex.Config{Race: true, Wait: quick}))(t)
		held := rig.Must(l.Lock(t.Context(), "door"))(t)
		if held.Token() <= first.Token() {
			t.Errorf("token %d after %d", held.Token(), first.Token())
		}
		rig.Is(t, held.Unlock(t.Context()))
	})
}
